package android.icu.util;

import java.util.Collections;
import java.util.Locale;
import java.util.Set;

/** A place for the library of Unicode, which is not here: there are no currencies. */
public final class Currency {
    private Currency() {}

    public static Currency getInstance(String code) { throw new IllegalArgumentException(code); }

    public static Currency getInstance(Locale locale) { throw new IllegalArgumentException(String.valueOf(locale)); }

    public static Set<Currency> getAvailableCurrencies() { return Collections.emptySet(); }

    public String getCurrencyCode() { return ""; }

    public String getSymbol(Locale locale) { return ""; }

    public String getDisplayName(Locale locale) { return ""; }

    public int getDefaultFractionDigits() { return 0; }

    public int getNumericCode() { return 0; }
}
