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

const PAGE = "caal.page";
const PAGE_ID = /^[0-9a-f]{32}$/;

/**
 * Return the id that this tab has made for itself. A reloaded tab keeps it, and so comes back to its
 * conversation.
 */
export function pageId(): string {
  const made = [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
  try {
    const stored = sessionStorage.getItem(PAGE) ?? "";
    if (PAGE_ID.test(stored)) return stored;
    sessionStorage.setItem(PAGE, made);
  } catch {
    // Without storage, a reloaded page begins a new conversation.
  }
  return made;
}
