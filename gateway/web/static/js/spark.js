// A line in small: a path in a box of 100 by 30, without axes.

// spark is the path of a group in a range; it breaks where there is no number.
export function spark({ times, values }, [from, to]) {
  const drawable = values.map((v) => (v === null || !Number.isFinite(Number(v)) ? null : Number(v)));
  const [low, high] = drawable.reduce(([l, h], v) => (v === null ? [l, h] : [Math.min(l, v), Math.max(h, v)]), [Infinity, -Infinity]);
  let [path, pen] = ['', 'M'];
  times.forEach((t, i) => {
    const v = drawable[i];
    if (v === null || t < from) { pen = 'M'; return; }
    const y = high === low ? 15 : 28 - (26 * (v - low)) / (high - low);
    path += `${pen}${((100 * (t - from)) / (to - from)).toFixed(2)} ${y.toFixed(2)}`;
    pen = 'L';
  });
  return path;
}

// dotted makes a dot of each point of a path that no line reaches, where line ends are round.
export const dotted = (path) => path.replace(/(M[\d.]+ [\d.]+)(?=M|$)/g, '$1h0');
