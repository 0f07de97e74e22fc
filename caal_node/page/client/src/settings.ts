/** What the user has chosen about sound; it stays in this browser. */

export interface Settings {
  readonly pushToTalk: boolean;
  /** A device's id; "" is the default of the system. */
  readonly microphone: string;
  readonly loudspeaker: string;
}

const STORED = "caal.settings";
const NONE: Settings = { pushToTalk: false, microphone: "", loudspeaker: "" };

export function loadSettings(): Settings {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORED) ?? "null");
    if (typeof stored !== "object" || stored === null) return NONE;
    const fields = stored as Record<string, unknown>;
    const id = (value: unknown) => (typeof value === "string" ? value : "");
    return {
      pushToTalk: fields.pushToTalk === true,
      microphone: id(fields.microphone),
      loudspeaker: id(fields.loudspeaker),
    };
  } catch {
    return NONE;
  }
}

export function saveSettings(settings: Settings): void {
  try {
    localStorage.setItem(STORED, JSON.stringify(settings));
  } catch {
    // They then last until the page is closed.
  }
}
