// What of a change can be seen.

// moves reports whether a range of time, [from, to], looks another way than the one that is shown, {min, max},
// over so many pixels: whether one of its ends has moved by a pixel.
export function moves([from, to], { min, max }, pixels) {
  const least = (max - min) / pixels;
  return !(Math.abs(from - min) < least && Math.abs(to - max) < least);
}
