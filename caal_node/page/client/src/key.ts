/** The key of the printed link: `#key=KEY` is taken from the address bar and kept for this tab. */

const STORED = "caal.key";
const KEY = /^[\x21-\x7e]{1,512}$/;

/** Return the key in a URL's fragment, or "" without one. */
export function keyInFragment(fragment: string): string {
  const key = new URLSearchParams(fragment.replace(/^#/, "")).get("key") ?? "";
  return KEY.test(key) ? key : "";
}

/** Take the key from the address, or the one of this tab; "" where there is none. */
export function takeKey(): string {
  const given = keyInFragment(location.hash);
  if (given) {
    try {
      sessionStorage.setItem(STORED, given);
    } catch {
      // Without storage, the key lasts until the page is reloaded.
    }
  }
  if (location.hash.includes("key=")) {
    history.replaceState(null, "", location.pathname + location.search);
  }
  if (given) return given;
  try {
    const stored = sessionStorage.getItem(STORED) ?? "";
    return KEY.test(stored) ? stored : "";
  } catch {
    return "";
  }
}
