/** Values of a query; those that are empty or false are left out. */
export type Values = { [name: string]: string | number | boolean | undefined };

export function query(values: Values): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== '' && value !== false) pairs.set(name, String(value));
  }
  const text = pairs.toString();
  return text === '' ? '' : `?${text}`;
}

const MAC = /^(?:[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}|[0-9a-f]{12})$/i;

/**
 * What a person types into the search field, as the API takes it, in the order in which it is tried. MAC addresses in any usual form
 * become `aa:bb:cc:dd:ee:ff`; twelve digits without separators may be a user name as well.
 */
export function identities(typed: string): string[] {
  const plain = typed.trim();
  if (!MAC.test(plain)) return [plain];
  const mac = plain.toLowerCase().replace(/[^0-9a-f]/g, '').match(/../g)!.join(':');
  return /^[0-9a-f]{12}$/i.test(plain) ? [plain, mac] : [mac];
}

/** Whether a text is an IPv4 or IPv6 address or prefix, closely enough to ask who has it. */
export function isAddress(text: string): boolean {
  const [address = '', length] = text.split('/');
  if (length !== undefined && !/^\d{1,3}$/.test(length)) return false;
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(address)) return true;
  return /^[0-9a-f:]+(\d{1,3}(\.\d{1,3}){3})?$/i.test(address) && address.split(':').length > 2
    && !/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(address);
}
