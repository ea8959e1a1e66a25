// Which points of a frontier have room for their name, and on which side: as charts/placing.py has it.

const PLACING = { width: 640, height: 380, point: 5, letter: 5.6, line: 10, aside: 8, below: 11, margin: 14, padding: { log: 60, sqrt: 0 } };

/** Return rows with the side on which their name has room, in a drawing so many pixels wide. */
function withNames(rows, scale, width = PLACING.width) {
  const { point, letter, line, aside, below } = PLACING;
  const spots = spotsOf(rows, scale, width);
  const box = (left, right, middle, half) => ({ left, right, top: middle - half, bottom: middle + half });
  const points = spots.map(([x, y]) => box(x - point, x + point, y, point));
  const taken = [];
  const sides = rows.map(() => "");
  const order = rows.map((_, n) => n).sort((a, b) => rows[b].front - rows[a].front || rows[b].value - rows[a].value || a - b);
  for (const n of order) {
    const [[x, y], long] = [spots[n], letter * [...rows[n].model].length];
    const others = [...taken, ...points.filter((_, m) => m !== n)];
    const places = [["right", box(x + aside, x + aside + long, y + below, line / 2)], ["left", box(x - aside - long, x - aside, y - below, line / 2)]];
    if (rows[n].front) places.reverse();
    const free = places.find(([, place]) => place.left >= 0 && place.right <= width && !others.some((one) => meet(place, one)));
    if (free === undefined) continue;
    sides[n] = free[0];
    taken.push(free[1]);
  }
  return rows.map((row, n) => ({ ...row, name_at: sides[n] }));
}

function meet(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

/** Return where the points are, in pixels from the left and from the top. */
function spotsOf(rows, scale, width) {
  const { height, margin } = PLACING;
  const along = rows.map((row) => Math[scale](row.x));
  const [least, most] = [scale === "log" ? Math.min(...along) : 0, Math.max(...along)];
  const [low, high] = [Math.min(...rows.map((row) => row.low)), Math.max(...rows.map((row) => row.high))];
  const padding = PLACING.padding[scale];
  return rows.map((row, n) => [
    padding + (width - 2 * padding) * (most > least ? (along[n] - least) / (most - least) : 0.5),
    margin + (height - 2 * margin) * (high > low ? (high - row.value) / (high - low) : 0.5),
  ]);
}
