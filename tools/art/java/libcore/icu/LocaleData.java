package libcore.icu;

import java.util.Locale;

/** How numbers and dates are written: as in English, in every locale. */
public final class LocaleData {
    private static final LocaleData ENGLISH = new LocaleData();

    public Integer firstDayOfWeek = 1;
    public Integer minimalDaysInFirstWeek = 1;
    public String[] amPm = {"AM", "PM"};
    public String[] eras = {"BC", "AD"};
    public String[] longMonthNames = {
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"
    };
    public String[] shortMonthNames = shortened(longMonthNames, 3);
    public String[] tinyMonthNames = shortened(longMonthNames, 1);
    public String[] longStandAloneMonthNames = longMonthNames;
    public String[] shortStandAloneMonthNames = shortMonthNames;
    public String[] tinyStandAloneMonthNames = tinyMonthNames;
    public String[] longWeekdayNames = {"", "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
    public String[] shortWeekdayNames = shortened(longWeekdayNames, 3);
    public String[] tinyWeekdayNames = shortened(longWeekdayNames, 1);
    public String[] longStandAloneWeekdayNames = longWeekdayNames;
    public String[] shortStandAloneWeekdayNames = shortWeekdayNames;
    public String[] tinyStandAloneWeekdayNames = tinyWeekdayNames;
    public char zeroDigit = '0';
    public char decimalSeparator = '.';
    public char groupingSeparator = ',';
    public char patternSeparator = ';';
    public String percent = "%";
    public String perMill = "\u2030";
    public char monetarySeparator = '.';
    public String minusSign = "-";
    public String exponentSeparator = "E";
    public String infinity = "\u221e";
    public String NaN = "NaN";
    public String currencySymbol = "\u00a4";
    public String internationalCurrencySymbol = "XXX";
    public String numberPattern = "#,##0.###";
    public String integerPattern = "#,##0";
    public String currencyPattern = "\u00a4#,##0.00";
    public String percentPattern = "#,##0%";
    public String timeFormat_hm = "h:mm a";
    public String timeFormat_Hm = "HH:mm";
    public String timeFormat_hms = "h:mm:ss a";
    public String timeFormat_Hms = "HH:mm:ss";

    private LocaleData() {}

    private static String[] shortened(String[] names, int length) {
        String[] shortened = new String[names.length];
        for (int i = 0; i < names.length; i++) shortened[i] = names[i].substring(0, Math.min(length, names[i].length()));
        return shortened;
    }

    public static Locale mapInvalidAndNullLocales(Locale locale) { return locale == null ? Locale.getDefault() : locale; }

    public static LocaleData get(Locale locale) { return ENGLISH; }

    public String getDateFormat(int style) { return "MMM d, y"; }

    public String getTimeFormat(int style) { return timeFormat_Hms; }
}
