// What a table and a legend tell of a line.

const isNumber = (v) => v !== null && !Number.isNaN(v);

// newest is the last point of a group that is a number, [time, value] or nothing.
export function newest({ times, values }) {
  for (let i = values.length - 1; i >= 0; i--) if (isNumber(values[i])) return [times[i], values[i]];
  return [];
}

// summary returns {last, least, greatest, mean} of a group's numbers from one time to another, all
// null if there are none.
export function summary({ times, values }, [from, to]) {
  const numbers = values.filter((v, i) => isNumber(v) && times[i] >= from && times[i] <= to).map(Number);
  if (numbers.length === 0) return { last: null, least: null, greatest: null, mean: null };
  let [least, greatest, sum] = [Infinity, -Infinity, 0];
  for (const v of numbers) [least, greatest, sum] = [Math.min(least, v), Math.max(greatest, v), sum + v];
  return { last: numbers.at(-1), least, greatest, mean: sum / numbers.length };
}
