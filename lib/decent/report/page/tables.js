// The parts of a run that are no curves: its head, topology, classes, recipe, warnings, machine.

const STATUS = {completed: "completed", stopped: "stopped", failed: "failed", running: "running", unknown: "no end recorded"};

function statusMark(run) {
  const status = Object.hasOwn(STATUS, run.status) ? run.status : "unknown";
  return element("span", {class: `status ${status}`}, run.end?.stopped_early ? "stopped early" : STATUS[status]);
}

function tiles(pairs) {
  return element("dl", {class: "tiles"}, pairs.filter(([, value]) => value !== null && value !== "–")
    .map(([name, value, more]) => element("div", {}, element("dt", {}, name),
                                         element("dd", {}, value, more ? element("small", {}, " " + more) : null))));
}

const listOf = (texts) => element("ul", {}, texts.map((text) => element("li", {}, element("p", {}, text))));

// The error that ended a run is the last line of its log.
function failureOf(run) {
  const last = run.warnings.at(-1);
  return run.status === "failed" && last ? `The run failed. Its log ends with: ${last.text}` : null;
}

function problemsOf(run) {
  const said = [failureOf(run), ...run.problems].filter(Boolean);
  return said.length ? element("div", {class: "notice"}, listOf(said)) : null;
}

function runHead(run) {
  const evaluated = run.last("eval", "loss");
  const share = run.metrics().find((name) => SHARES.test(name));
  const speed = run.throughput();
  return [
    element("h1", {}, run.name, statusMark(run)),
    element("p", {class: "where"}, element("span", {class: "code"}, run.folder), run.starts[0]?.step === 0 ? `, begun ${run.starts[0].time}` : ""),
    tiles([["Steps", numberText(run.lastStep()), run.lastEpoch() ? `${numberText(run.lastEpoch(), 3)} epochs` : null],
           ["Training time", secondsText(run.trainingSeconds())],
           [run.starts.length > 1 || run.starts[0]?.step > 0 ? "Wall time since the last start" : "Wall time", run.end && run.end.wall_s !== null ? secondsText(run.end.wall_s) : "–"],
           ["Workers", run.workers ? String(run.workers) : "–"],
           [evaluated === null ? "Training loss" : "Evaluation loss", numberText(evaluated ?? run.last("train", "loss"))],
           [share ? titleOf(share) : "", share ? percentText(run.last("eval", share)) : "–"],
           ["Throughput", speed === null ? "–" : numberText(speed, 3), "samples/s"]]),
    run.warnings.length ? element("p", {class: "alert"}, element("a", {href: "#warned"}, counted(run.warnings.length, "warning"))) : null,
    problemsOf(run),
  ];
}

// If a part of an odd run cannot be shown, the other parts still are.
function shownOrNotice(make) {
  try {
    return make();
  } catch (error) {
    return element("p", {class: "notice"}, `This part cannot be shown: ${error.message}.`);
  }
}

// `make` gives the content.
function section(title, id, make) {
  const inside = [shownOrNotice(make)].flat().filter(Boolean);
  return inside.length ? element("section", {"aria-labelledby": id}, element("h2", {id}, title), inside) : null;
}

// Each phase as a picture of its own, so that phases wrap on a narrow page.
function phasesOf(picture) {
  const svg = document.importNode(new DOMParser().parseFromString(picture, "image/svg+xml").documentElement, true);
  return [...svg.querySelectorAll("svg")].map((phase) => {
    for (const name of ["x", "y"]) phase.removeAttribute(name);
    for (const name of ["font-family", "font-size", "text-anchor"]) phase.setAttribute(name, svg.getAttribute(name));
    return phase;
  });
}

function topologyBlock(run) {
  const topology = run.topology ?? {};
  if (topology.method && topology.method !== "gossip") {
    const why = topology.method === "none" ? "Each worker trains alone (parallel.method: none)." : "All workers average their gradients in every step (parallel.method: all_reduce), so that no topology is used.";
    return element("p", {}, why);
  }
  if (!topology.phases) return null;
  const figure = element("figure", {class: "topology"});
  if (topology.svg) figure.append(element("div", {class: "phases"}, phasesOf(topology.svg)));
  const heard = topology.heard == null ? "Some workers never hear of others." : `Everyone has heard of everyone after ${counted(topology.heard, "step")}.`;
  const gap = topology.gap == null ? "" : ` Spectral gap ${topology.gap.toFixed(4)}: the share of their disagreement that one pass through all phases takes away at least.`;
  figure.append(element("figcaption", {}, element("p", {class: "note"},
    `${topology.name}, ${counted(run.workers, "worker")}, ${counted(topology.phases, "phase")}. Workers that a line or an area joins average their weights. ${heard}${gap}`)));
  return figure;
}

// ---- classes ----------------------------------------------------------------------------------

const MOST_CLASSES_DRAWN = 30;

function matrixTable({classes, counts}) {
  const count = classes.length;
  const row = (truth) => counts.slice(truth * count, (truth + 1) * count);
  const cells = (truth) => row(truth).map((value, predicted) => {
    const share = classes[truth].samples ? value / classes[truth].samples : 0;
    return element("td", {"data-share": value ? share : null, title: `${classes[truth].name} taken for ${classes[predicted].name}: ${value}`},
                   value ? numberText(value) : "");
  });
  const table = element("table", {class: classes.some(({name}) => name.length > 3) ? "matrix upright" : "matrix", id: "confusion"},
    element("thead", {},
      element("tr", {}, element("td", {}), element("th", {class: "axis", scope: "colgroup", colspan: count}, "predicted")),
      element("tr", {}, element("th", {class: "axis", scope: "col"}, "true"), classes.map(({name}) => element("th", {scope: "col", title: name}, element("span", {}, name))))),
    element("tbody", {}, classes.map(({name}, truth) => element("tr", {}, element("th", {scope: "row", title: name}, name), cells(truth)))));
  colorShares(table);
  return scrolling("Confusion matrix", "A row for each true class, a column for what it was taken for; the colour is the share of the row.", table);
}

// Called again when the colours of the page change.
function colorShares(inside) {
  const cells = [...inside.querySelectorAll("[data-share]")];
  const looks = cells.map((cell) => shareColors(Number(cell.dataset.share)));
  cells.forEach((cell, i) => Object.assign(cell.style, looks[i]));
}

function classTable({classes}) {
  const head = ["class", "samples", "precision", "recall", "F1"];
  return scrolling("Classes", "How well each class is told from the others.", element("table", {id: "classes"},
    element("thead", {}, element("tr", {}, head.map((name, i) => element("th", {scope: "col", class: i ? "number" : null}, name)))),
    element("tbody", {}, classes.map((each) => element("tr", {}, element("th", {scope: "row"}, each.name),
      element("td", {class: "number"}, numberText(each.samples)),
      [each.precision, each.recall, each.f1].map((share) => element("td", {class: "number"}, percentText(share))))))));
}

// The matrix's file does not say which evaluation wrote it. It was the last one, if the number of samples is the same.
function matrixOrigin(run) {
  const samples = run.confusion.counts.reduce((a, b) => a + b, 0);
  const last = run.later.at(-1);
  if (!last || last.figures.samples !== samples) return `Of the last --eval-only, on ${counted(samples, "sample")}.`;
  return `Of the last --eval-only: step ${numberText(last.figures.step)}, checkpoint: ${last.checkpoint || "the run's"}, data: ${last.source || "the run's"}, ` +
    `${counted(samples, "sample")}.`;
}

function classBlock(run) {
  if (!run.confusion || run.confusion.classes.length === 0) return null;
  const {length} = run.confusion.classes;
  const drawn = length <= MOST_CLASSES_DRAWN ? matrixTable(run.confusion)
    : element("p", {}, `The confusion matrix of ${length} classes is too large for a page: eval-confusion.csv in the folder of the run has it.`);
  return [element("p", {class: "note"}, matrixOrigin(run)),
          element("div", {class: length <= 12 ? "split" : "stack"}, drawn, classTable(run.confusion))];
}

function laterBlock(run) {
  if (run.later.length === 0) return null;
  const names = [...new Set(run.later.flatMap(({figures}) => Object.keys(figures)))].filter((name) => !["epoch"].includes(name));
  const text = (name, value) => (SHARES.test(name) ? percentText : numberText)(value);
  return scrolling("Later evaluations", null, element("table", {id: "evaluations"},
    element("thead", {}, element("tr", {}, names.map((name) => element("th", {scope: "col", class: "number"}, name.replaceAll("_", " "))), element("th", {scope: "col"}, "data"), element("th", {scope: "col"}, "checkpoint"))),
    element("tbody", {}, run.later.map(({figures, source, checkpoint}) => element("tr", {},
      names.map((name) => element("td", {class: "number"}, text(name, figures[name]))),
      element("td", {class: "code"}, source || "the run's"), element("td", {class: "code"}, checkpoint || "the run's"))))));
}

// ---- recipe, warnings, machine ----------------------------------------------------------------

function recipeRows(rows, marked) {
  const table = element("table", {class: "stacks"},
    element("thead", {}, element("tr", {}, ["key", "value", marked ? "default" : null].filter(Boolean).map((name) => element("th", {scope: "col"}, name)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, element("th", {scope: "row", class: "code"}, row.key), element("td", {class: "code"}, row.value),
      marked ? element("td", {class: "code soft default"}, row.default) : null))));
  return marked ? scrolling("What differs from the defaults", "What differs from the defaults.", table) : scrolling("All other keys", "As by default.", table);
}

function recipeBlock(run) {
  if (run.recipe.length === 0) return null;
  const changed = run.recipe.filter((row) => row.differs), rest = run.recipe.filter((row) => !row.differs);
  return [element("div", {id: "recipe"}, changed.length ? recipeRows(changed, true) : element("p", {}, "Nothing differs from the defaults.")),
          rest.length ? element("details", {}, element("summary", {}, `All other keys (${rest.length})`), recipeRows(rest, false)) : null];
}

function warningsBlock(run) {
  if (run.warnings.length === 0) return null;
  return element("ul", {class: "warnings", id: "warnings"}, run.warnings.map(({time, text}) => element("li", {}, element("time", {}, time), text)));
}

function machineBlock(run) {
  const last = run.starts.at(-1);
  if (!last) return null;
  return element("table", {id: "machine", class: "stacks"}, element("tbody", {}, [["program", last.program], ...last.lines].map(([word, text]) =>
    element("tr", {}, element("th", {scope: "row"}, word), element("td", {class: "code"}, text)))));
}

// Of a run that was resumed: when, where, with how many workers, and what was changed.
function startsBlock(run) {
  if (run.starts.length < 2) return null;
  const changes = ({changed}) => element("ul", {}, changed.map(({topic, was, is}) => element("li", {}, element("span", {class: "code"}, topic), `: ${was || "–"} → ${is || "–"}`)));
  return scrolling("Starts", "The run went on after the step that each start names, with what had changed since the start before.", element("table", {id: "starts"},
    element("thead", {}, element("tr", {}, ["time", "after step", "workers", "program", "changed"].map((name) => element("th", {scope: "col"}, name)))),
    element("tbody", {}, run.starts.map((start) => element("tr", {}, element("td", {}, start.time), element("td", {class: "number"}, numberText(start.step)),
      element("td", {class: "number"}, String(start.workers)), element("td", {}, start.program), element("td", {}, changes(start)))))));
}

// Of a run that went on with other workers: when, who was lost, how many trained from then on, and how long nobody did.
function workersBlock(run) {
  if (run.resumes.length === 0) return null;
  const begun = ({step, workers}) => run.starts.findLast((start) => start.step === step && start.workers === workers)?.time ?? "–";
  const lost = (ranks) => (ranks.length ? `${ranks.length === 1 ? "worker" : "workers"} ${ranks.join(", ")}` : "–");
  const head = ["went on at", "after step", "lost", "workers", "pause"];
  return scrolling("Changes of workers", "After these steps other workers went on. The pause is the time since the first of the lost workers was lost.", element("table", {id: "resumes"},
    element("thead", {}, element("tr", {}, head.map((name) => element("th", {scope: "col"}, name)))),
    element("tbody", {}, run.resumes.map((resume) => element("tr", {}, element("td", {}, begun(resume)), element("td", {class: "number"}, numberText(resume.step)),
      element("td", {}, lost(resume.lost)), element("td", {class: "number"}, `${resume.before} → ${resume.workers}`), element("td", {class: "number"}, secondsText(resume.pause_s)))))));
}
