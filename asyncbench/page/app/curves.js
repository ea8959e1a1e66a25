// Accuracy against length: the logistic curve of greatest likelihood, as results/curves has it.

const STEPS = 60; // points of a drawn line
const MOST_POINTS = 20;
const NEWTON = 50;
const CLOSE = 1e-10;

/** Return the rows of one curve; points are [length, correct, trials], in any order; repeats do not narrow its intervals. */
function curveOf(counts, repeats) {
  const points = pooled(counts);
  const rows = shownPoints(points).map(([length, right, trials]) => {
    const [low, high] = wilson(right, trials, repeats);
    return { kind: "point", length, value: right / trials, low, high, trials, label: "" };
  });
  const line = fittedLine(points);
  return line === null ? rows : [...rows, ...lineRows(line, points, repeats)];
}

/** Return points by length, each once; those without trials are left out. */
function pooled(counts) {
  const sums = new Map();
  for (const [length, right, trials] of counts) {
    const sum = sums.get(length) ?? [length, 0, 0];
    sums.set(length, [length, sum[1] + right, sum[2] + trials]);
  }
  return [...sums.values()].filter((point) => point[2]).sort((a, b) => a[0] - b[0]);
}

/** Return points with neighbours taken together, where there are more than `MOST_POINTS`. */
function shownPoints(points) {
  const size = Math.ceil(points.length / MOST_POINTS);
  const places = Array.from({ length: Math.ceil(points.length / (size || 1)) }, (_, n) => points.slice(n * size, (n + 1) * size));
  return places.map((those) => {
    const [right, trials] = [1, 2].map((i) => those.reduce((sum, point) => sum + point[i], 0));
    return [those.reduce((sum, point) => sum + point[0] * point[2], 0) / trials, right, trials];
  });
}

function lineRows(line, points, repeats) {
  const [shortest, longest] = [points[0][0], points.at(-1)[0]];
  const rows = Array.from({ length: STEPS }, (_, n) => {
    const length = shortest + (n * (longest - shortest)) / (STEPS - 1);
    const logit = line.intercept + line.slope * length;
    const half = Z * Math.sqrt(repeats * varianceAt(line, length));
    return { kind: "line", length, value: shareOf(logit), low: shareOf(logit - half), high: shareOf(logit + half), trials: 0, label: "" };
  });
  const at = crossing(line, shortest, longest);
  if (at === null) return rows;
  return [...rows, { kind: "half", length: at, value: 0.5, low: null, high: null, trials: 0, label: at.toFixed(1) }];
}

/** Return the length where a falling line crosses 50 %; null: not within the lengths that were asked. */
function crossing(line, shortest, longest) {
  const above = [shortest, longest].map((length) => line.intercept + line.slope * length >= 0);
  return above[0] === above[1] || line.slope >= 0 ? null : -line.intercept / line.slope;
}

function varianceAt(line, length) {
  return Math.max(0, line.ofIntercept + 2 * length * line.across + length * length * line.ofSlope);
}

/** Return whether one line has the greatest likelihood: right and wrong answers overlap in length. */
function hasLine(points) {
  const right = points.filter((point) => point[1] > 0).map((point) => point[0]);
  const wrong = points.filter((point) => point[1] < point[2]).map((point) => point[0]);
  if (points.length < 2 || !right.length || !wrong.length) return false;
  return right.at(-1) > wrong[0] && wrong.at(-1) > right[0];
}

/** Return the line by Newton's method, with the inverse of the observed information; null: there is none. */
function fittedLine(points) {
  if (!hasLine(points)) return null;
  const all = points.reduce((sum, point) => sum + point[2], 0);
  const successes = points.reduce((sum, point) => sum + point[1], 0);
  const centre = points.reduce((sum, point) => sum + point[0] * point[2], 0) / all;
  const centred = points.map(([length, right, trials]) => [length - centre, right, trials]);
  const { level, slope } = climbed(centred, Math.log(successes / (all - successes)));
  const [ofLevel, across, ofSlope] = inverse(derivatives(centred, level, slope).information);
  return {
    intercept: level - slope * centre,
    slope,
    ofIntercept: ofLevel - 2 * centre * across + centre * centre * ofSlope,
    across: across - centre * ofSlope,
    ofSlope,
  };
}

function climbed(points, start) {
  let [level, slope] = [start, 0];
  let best = logLikelihood(points, level, slope);
  for (let n = 0; n < NEWTON; n += 1) {
    const { alongLevel, alongSlope, information } = derivatives(points, level, slope);
    const [ofLevel, across, ofSlope] = inverse(information);
    let [rise, turn] = [ofLevel * alongLevel + across * alongSlope, across * alongLevel + ofSlope * alongSlope];
    let found = logLikelihood(points, level + rise, slope + turn);
    while (found < best - 1e-9) {
      [rise, turn] = [rise / 2, turn / 2]; // too far: Newton's step overshoots on steep curves
      found = logLikelihood(points, level + rise, slope + turn);
    }
    [level, slope, best] = [level + rise, slope + turn, found];
    if (Math.abs(rise) < CLOSE * (1 + Math.abs(level)) && Math.abs(turn) < CLOSE * (1 + Math.abs(slope))) break;
  }
  return { level, slope };
}

function logLikelihood(points, intercept, slope) {
  return points.reduce((sum, [x, right, trials]) => {
    const logit = intercept + slope * x;
    return sum + right * logit - trials * (Math.max(logit, 0) + Math.log1p(Math.exp(-Math.abs(logit))));
  }, 0);
}

function derivatives(points, level, slope) {
  let [alongLevel, alongSlope, ofLevel, across, ofSlope] = [0, 0, 0, 0, 0];
  for (const [x, right, trials] of points) {
    const share = shareOf(level + slope * x);
    const [left, weight] = [right - trials * share, trials * share * (1 - share)];
    alongLevel += left;
    alongSlope += left * x;
    ofLevel += weight;
    across += weight * x;
    ofSlope += weight * x * x;
  }
  return { alongLevel, alongSlope, information: [ofLevel, across, ofSlope] };
}

function inverse([ofLevel, across, ofSlope]) {
  const determinant = ofLevel * ofSlope - across * across;
  return [ofSlope / determinant, -across / determinant, ofLevel / determinant];
}

function shareOf(logit) {
  return 1 / (1 + Math.exp(-Math.max(-700, Math.min(700, logit))));
}
