// Returns how many texts a drawing shows, and which of them meet another or leave the frame.
//
// Of a text that is turned its own box counts, not the upright one around it. A name and the border behind it are one.
// The sixth part of a box above and below its letters is empty, whatever they are.
() => {
  const frame = document.querySelector("svg").getBoundingClientRect();
  const seen = (one) => { let o = 1; for (; one; one = one.parentElement) o *= getComputedStyle(one).opacity; return o > 0.05; };
  const texts = [...document.querySelectorAll("svg text")].filter((one) => one.textContent.trim() && seen(one)).map((one) => {
    const { x, y, width, height } = one.getBBox(), at = one.getScreenCTM(), empty = height / 6;
    const corners = [[x + 1, y + empty], [x + width - 1, y + empty], [x + width - 1, y + height - empty], [x + 1, y + height - empty]]
    .map(([left, top]) => [at.a * left + at.c * top + at.e, at.b * left + at.d * top + at.f]);
    const of = (n) => corners.map((corner) => corner[n]);
    return { text: one.textContent, corners, left: Math.min(...of(0)), right: Math.max(...of(0)), top: Math.min(...of(1)), bottom: Math.max(...of(1)) };
  }).sort((one, other) => one.left - other.left);
  const apart = (one, other) => [one, other].some(({ corners }) => [0, 1].some((n) => {
    const [across, down] = [0, 1].map((axis) => corners[n + 1][axis] - corners[n][axis]);
    const [ours, theirs] = [one, other].map((text) => text.corners.map(([left, top]) => left * across + top * down));
    return Math.max(...ours) <= Math.min(...theirs) || Math.max(...theirs) <= Math.min(...ours);
  }));
  const one = (a, b) => a.text === b.text && Math.abs(a.left - b.left) < 0.5 && Math.abs(a.top - b.top) < 0.5;
  const faults = texts.filter((text) => text.left < frame.left - 1 || text.right > frame.right + 1 || text.top < frame.top - 1 || text.bottom > frame.bottom + 1)
    .map(({ text }) => [text, "the frame"]);
  texts.forEach((text, n) => {
    for (let m = n + 1; m < texts.length && texts[m].left < text.right; m += 1)
    if (!one(text, texts[m]) && !apart(text, texts[m])) faults.push([text.text, texts[m].text]);
  });
  return [texts.length, faults];
}
