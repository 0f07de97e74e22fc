"""The table of docs/speech.md: what a model writes, and what is said for it.

`python -m tests.tts_text_table` writes the page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[1] / "docs" / "speech.md"

SAID: Final[dict[str, list[tuple[str, str]]]] = {
    "What is said well as it is": [
        ("Dr. Smith is here, e.g. at 8:00 PM.", "Dr. Smith is here, e.g. at 8:00 PM."),
        (
            "NASA and the U.S. agreed, i.e. both  did.",
            "NASA and the U.S. agreed, i.e. both  did.",
        ),
        ("It is 14:30, and pi is 3.14.", "It is 14:30, and pi is 3.14."),
        ("1,234,567 people use version 1.2.3.", "1,234,567 people use version 1.2.3."),
        ("AT&T, R&D, C++ and C# stay.", "AT&T, R&D, C++ and C# stay."),
        ("It is open 24/7, and/or 3/4 full.", "It is open 24/7, and/or 3/4 full."),
        ("The server is 192.168.1.10.", "The server is 192.168.1.10."),
        ("He won 3-1 with code 12-34.", "He won 3-1 with code 12-34."),
        ("A well-known song — “Yesterday” – 1965…", "A well-known song — “Yesterday” – 1965…"),
        ("你好，世界。", "你好，世界。"),
        ("In the 90s, a 5K on the 3rd.", "In the 90s, a 5K on the 3rd."),
        ("5m people heard 7-Eleven's ad.", "5m people heard 7-Eleven's ad."),
        ("Use ls -la or --help.", "Use ls -la or --help."),
    ],
    "Markdown": [
        ("## Weather\nIt is sunny.", "Weather.\nIt is sunny."),
        ("- milk\n- eggs\n\nThat is all.", "milk.\neggs.\n\nThat is all."),
        ("1. Open it.\n2. Wait\n3. Close it", "1. Open it.\n2. Wait.\n3. Close it"),
        ("- a long item\n  that goes on\n- next", "a long item\n  that goes on.\nnext"),
        ("- [ ] shop\n- [x] cook", "shop.\ndone: cook"),
        ("**Bold**, *italic*, ***both*** and _this_.", "Bold, italic, both and this."),
        ("5 * 3 is 15, and x*y stays.", "5 times 3 is 15, and x*y stays."),
        ("> quoted\n\n---\n\nafter", "quoted\n\n\nafter"),
        ("~~old~~ new", "new"),
        ("See [the manual](https://example.org/m).", "See the manual."),
        ("![a red door](door.png) is here", "a red door is here"),
        ("Paris is big [1], says Ann.[2][3]", "Paris is big, says Ann."),
        ("The list is [1, 2, 3].", "The list is [1, 2, 3]."),
    ],
    "Tables": [
        (
            "| Room | Now |\n|---|---|\n| Kitchen | 21 °C |\n| Bath | ✓ |\n",
            "Room: Kitchen, Now: 21 degrees Celsius.\nRoom: Bath, Now: yes.\n",
        ),
        (
            "| N |\n|---|\n| a |\n| b |\n| c |\n| d |\n| e |\n| f |\n| g |\n",
            "N: a.\nN: b.\nN: c.\nN: d.\nN: e.\nAnd 2 more rows, 7 in all.\n",
        ),
        ("| A | B |\n|---|---|\n", "A table with the columns A, B.\n"),
        ("| one | two |\nThen text.", "one, two.\nThen text."),
    ],
    "Code": [
        ("Run `sudo reboot` now.", "Run sudo reboot now."),
        (
            "So:\n```python\ndef f(x):\n    return x\n```\nDone.",
            "So:\nSome Python code, 2 lines.\nDone.",
        ),
        ("Type:\n```\nsudo reboot\n```", "Type:\nsudo reboot"),
        ("```\nHere is your answer.\nAll is well.\n```", "Here is your answer.\nAll is well."),
        ("Use the `<div>` tag and `get_user()`.", "Use the div tag and get user."),
    ],
    "Addresses and names": [
        ("https://example.org/a/b?c=1", "a link to example.org"),
        ("Go to https://www.example.org.", "Go to example.org."),
        ("Go to (http://localhost:8080/x).", "Go to (a link to localhost)."),
        ("Write to ann.lee@example.org!", "Write to ann.lee at example.org!"),
        ("light.kitchen_lamp is on", "light kitchen lamp is on"),
        ("I called get_user_name_now.", "I called get user name now."),
        ("It is in /etc/hosts now", "It is in slash etc slash hosts now"),
        ("~/.config/caal/logs/node.log", "node.log in logs"),
        (r"C:\Users\ann\notes.txt", "notes.txt in ann"),
        ("ID 123e4567-e89b-12d3-a456-42661417400f", "ID that ends in 4 0 0 f"),
        ("commit 9f86d081884c7d659a2feaa0", "commit a code that ends in e a a 0"),
    ],
    "Numbers, units, money": [
        ("21 °C, -5°C", "21 degrees Celsius, minus 5 degrees Celsius"),
        ("80% at 5 km/h, then 1 km", "80 percent at 5 kilometers per hour, then 1 kilometer"),
        ("20°C/68°F", "20 degrees Celsius, 68 degrees Fahrenheit"),
        ("It is 6 ft. wide. So 5 m. Yes.", "It is 6 feet wide. So 5 meters. Yes."),
        ("~5 min, <10 kg, +3", "about 5 minutes, less than 10 kilograms, plus 3"),
        ("3-5 days, 10–12 km, 2019–2021", "3 to 5 days, 10 to 12 kilometers, 2019 to 2021"),
        ("$5, $3.50, €0.99 and £1", "5 dollars, 3 dollars and 50 cents, 99 cents and 1 pound"),
        ("$5 million, $1.2B", "5 million dollars, 1.2 billion dollars"),
        ("it says $² here", "it says $ squared here"),
        ("$5/month or ~$20", "5 dollars per month or about 20 dollars"),
        ("from $5-10, or 20 €", "from 5 to 10 dollars, or 20 euros"),
        ("#5 on the list", "number 5 on the list"),
        ("Call 555-1234 now", "Call 5 5 5, 1 2 3 4 now"),
        ("+1 (555) 123-4567", "plus 1, 5 5 5, 1 2 3, 4 5 6 7"),
        ("200-1000 people", "200-1000 people"),
    ],
    "Dates and times": [
        ("2026-11-22", "November 22, 2026"),
        ("at 2026-11-22T08:00", "at November 22, 2026 at 8:00"),
        ("2026-11-22T08:05:09Z", "November 22, 2026 at 8:05:09 UTC"),
        ("2026-11-22T08:00+02:00", "November 22, 2026 at 8:00 UTC plus 2"),
        ("on 11/22, or 11/22/2026", "on November 22, or November 22, 2026"),
        ("It is 11/22 and 03/04/2026.", "It is 11/22 and 03/04/2026."),
        ("9:00-17:00, 9am-5pm", "9:00 to 17:00, 9am to 5pm"),
    ],
    "Signs, formulas, tags, pictures": [
        ("A & B, 3 + 4 = 7, A -> B, x ≥ 5", "A and B, 3 plus 4 equals 7, A to B, x at least 5"),
        ("Tom &amp; Jerry", "Tom and Jerry"),
        ("<b>bold</b> text<br>new line", "bold text\nnew line"),
        ("$E = mc^2$ holds", "E equals mc squared holds"),
        (r"\(\frac{a}{b}\) and $$\sqrt{2}$$", "a over b and the square root of 2"),
        ("Great 🎉 job 😀!", "Great job!"),
        ("Sure :) (╯°□°)╯︵ ┻━┻ ok", "Sure ok"),
        ("⭐⭐⭐⭐ for that", "4 stars for that"),
    ],
}  # fmt: skip


def tables() -> str:
    parts: list[str] = []
    for title, rows in SAID.items():
        lines = "".join(f"| {_cell(text)} | {_cell(said)} |\n" for text, said in rows)
        parts.append(f"## {title}\n\n| Written | Said |\n| --- | --- |\n{lines}")
    return "\n".join(parts)


def page() -> str:
    """Return the page as it should be. What stands before its first table is written by hand."""
    intro, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## ")
    return f"{intro}\n{tables()}"


def _cell(text: str) -> str:
    shown = text.replace("\n", "⏎").replace("|", "\\|")
    mark = "``" if "`" in shown else "`"
    pad = " " if "`" in shown else ""
    return f"{mark}{pad}{shown}{pad}{mark}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
