// Draws the page's icon: four bars on a rounded square, once as SVG and once as pixels.
import { deflateSync } from "node:zlib";

const GROUND = [11, 107, 90];
const BARS = [255, 255, 255];
/** In parts of 24: x, y, width and height of each bar. */
const SHAPES = [
  [5, 10, 2, 4],
  [9, 7.5, 2, 9],
  [13, 5.5, 2, 13],
  [17, 9, 2, 6],
];

const hex = (colour) => `#${colour.map((part) => part.toString(16).padStart(2, "0")).join("")}`;

export function svgIcon() {
  const bars = SHAPES.map(
    ([x, y, width, height]) =>
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="1"/>`,
  ).join("");
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">` +
    `<rect width="24" height="24" rx="5.5" fill="${hex(GROUND)}"/>` +
    `<g fill="${hex(BARS)}">${bars}</g></svg>\n`
  );
}

/** The distance of a point to a rounded rectangle; it is negative inside. */
function distance(px, py, [x, y, width, height], round) {
  const dx = Math.abs(px - x - width / 2) - width / 2 + round;
  const dy = Math.abs(py - y - height / 2) - height / 2 + round;
  return Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) + Math.min(Math.max(dx, dy), 0) - round;
}

/** Draw the icon as PNG; one that is maskable fills its square, as systems cut it themselves. */
export function pngIcon(size, maskable) {
  const scale = 24 / size;
  const cover = (away) => Math.min(1, Math.max(0, 0.5 - away / scale));
  const rows = Buffer.alloc(size * (1 + 4 * size));
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < size; column += 1) {
      const x = (column + 0.5) * scale;
      const y = (row + 0.5) * scale;
      const ground = maskable ? 1 : cover(distance(x, y, [0, 0, 24, 24], 5.5));
      const bar = Math.max(...SHAPES.map((shape) => cover(distance(x, y, shape, 1))));
      const at = row * (1 + 4 * size) + 1 + 4 * column;
      for (let part = 0; part < 3; part += 1) {
        rows[at + part] = Math.round(GROUND[part] + (BARS[part] - GROUND[part]) * bar);
      }
      rows[at + 3] = Math.round(255 * ground);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 6, 0, 0, 0], 8); // 8 bits, with transparency
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type, data) {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const whole = Buffer.alloc(named.length + 8);
  whole.writeUInt32BE(data.length, 0);
  named.copy(whole, 4);
  whole.writeUInt32BE(crc32(named), named.length + 4);
  return whole;
}

function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
