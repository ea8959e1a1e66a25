// Two entrants side by side: the questions on which one is right and the other is not.

/** Return the entrants that share questions with others, by ranking. */
function sharing(rankings) {
  return rankings.filter(({ alone, paired, lines }) => !alone && paired && lines.length > 1).map(({ lines }) => lines.map((line) => line.asked));
}

/** Return two choices of entrants; `choose` gets their places. */
function pairField(places, pair, choose) {
  const selects = pair.map((chosen, n) => {
    const select = element("select", { id: `versus-${n}`, onchange: () => choose(selects.map((one) => Number(one.value))) },
      places.map((place) => element("option", { value: place }, plain(head.entrants[place].short))));
    select.value = String(chosen);
    return select;
  });
  return [element("label", {}, "Side by side", selects[0]), element("label", {}, "and", selects[1])];
}

/** Return the choice of two of a ranking and the way to the questions on which they differ; null where none share any. */
function versusLink(ranking) {
  const [places] = sharing([ranking]);
  if (!places) return null;
  const addressAt = (pair) => hashOf(answersAt({ versus: pair, ...ofRanking(ranking) }));
  const link = element("a", { class: "button", id: "differ", href: addressAt(places.slice(0, 2)) }, "Questions on which they differ");
  const choose = (pair) => link.setAttribute("href", addressAt(pair));
  return element("p", { class: "tools pair" }, pairField(places, places.slice(0, 2), choose), link);
}

/** Return the choice of the two that are compared, and what the list of answers holds. */
async function versusTools() {
  const { rankings } = await source.block("standings");
  const places = [...new Set([...sharing(rankings).flat(), ...state.versus])].filter((place) => place in head.entrants);
  const [one, other] = state.versus.map((place) => plain(head.entrants[place]?.short ?? "?"));
  return element("div", {}, element("p", { class: "tools pair" }, pairField(places, state.versus, (versus) => narrow({ versus }))),
    element("p", { class: "about" }, `Answers of ${one} that are wrong where ${other} is right, then those that are right where ${other} is wrong.`));
}

/** Return the answers of the two to one question, each in its half. */
function versusCard(trial, { trials }) {
  const ofEntrant = (place) => trials.filter((one) => one.asked === place).sort((a, b) => (b.id === trial.id) - (a.id === trial.id) || a.repeat - b.repeat);
  const half = (one) => [element("h3", {}, badge(one.outcome), whoOf(one.asked), one.repeat ? ` (repeat ${one.repeat})` : ""), comparison(one), because(one), passagesOf(one)].flat();
  return element("article", { class: "card", "aria-label": "The two answers", "data-trial": trial.id },
    ...aboutTrial(trial), element("div", { class: "halves" }, state.versus.map((place) => element("section", {}, ofEntrant(place).flatMap(half)))),
    besideLink(trial), promptOf(trial));
}
