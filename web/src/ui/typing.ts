// Whether a key that is pressed belongs to a field.

/** Whether somebody writes into a field; the page's keys of one letter have to wait then. */
export function isTyping({ target }: Event): boolean {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement
  );
}
