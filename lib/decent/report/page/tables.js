// What of a run is no curve: its head, topology, classes, recipe, warnings, machine.

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

function problemsOf(run) {
  if (run.problems.length === 0) return null;
  return element("div", {class: "notice"}, element("ul", {}, run.problems.map((problem) => element("li", {}, element("p", {}, problem)))));
}

function runHead(run) {
  const evaluated = run.last("eval", "loss");
  const share = run.metrics().find((name) => SHARES.test(name));
  const speed = run.throughput();
  return [
    element("h1", {}, run.name, statusMark(run)),
    element("p", {class: "where"}, element("span", {class: "code"}, run.folder), run.log.began ? `, begun ${run.log.began}` : ""),
    tiles([["Steps", numberText(run.lastStep()), run.lastEpoch() ? `${numberText(run.lastEpoch(), 3)} epochs` : null],
           ["Training time", secondsText(run.trainingSeconds())],
           ["Wall time", run.end && run.end.wall_s !== null ? secondsText(run.end.wall_s) : "–"],
           ["Workers", run.workers ? String(run.workers) : "–"],
           [evaluated === null ? "Training loss" : "Evaluation loss", numberText(evaluated ?? run.last("train", "loss"))],
           [share ? titleOf(share) : "", share ? percentText(run.last("eval", share)) : "–"],
           ["Throughput", speed === null ? "–" : numberText(speed, 3), "samples/s"]]),
    run.log.warnings.length ? element("p", {class: "alert"}, element("a", {href: "#warned"}, counted(run.log.warnings.length, "warning"))) : null,
    problemsOf(run),
  ];
}

// What cannot be shown of an odd run takes nothing else with it.
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

function topologyBlock(run) {
  const topology = run.topology ?? {};
  if (topology.method && topology.method !== "gossip") {
    const why = topology.method === "none" ? "Each worker trains alone (parallel.method: none)." : "All workers average their gradients in every step (parallel.method: all_reduce), so that no topology is used.";
    return element("p", {}, why);
  }
  if (!topology.phases) return null;
  const figure = element("figure", {class: "topology"});
  if (topology.svg) {
    const svg = new DOMParser().parseFromString(topology.svg, "image/svg+xml").documentElement;
    figure.append(document.importNode(svg, true));
  }
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
    const cell = element("td", {title: `${classes[truth].name} taken for ${classes[predicted].name}: ${value}`}, value ? numberText(value) : "");
    if (value) cell.style.background = `rgba(var(--heat), ${(0.08 + 0.92 * share).toFixed(3)})`;
    if (share > 0.55) cell.style.color = "var(--paper)";
    return cell;
  });
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Confusion matrix"},
    element("table", {class: classes.some(({name}) => name.length > 3) ? "matrix upright" : "matrix", id: "confusion"},
      element("caption", {}, "A row for each true class, a column for what it was taken for; the colour is the share of the row."),
      element("thead", {}, element("tr", {}, element("th", {class: "axis", scope: "col"}, "true"), classes.map(({name}) => element("th", {scope: "col", title: name}, element("span", {}, name))))),
      element("tbody", {}, classes.map(({name}, truth) => element("tr", {}, element("th", {scope: "row", title: name}, name), cells(truth))))));
}

function classTable({classes}) {
  const head = ["class", "samples", "precision", "recall", "F1"];
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Classes"}, element("table", {id: "classes"},
    element("caption", {}, "How well each class is told from the others."),
    element("thead", {}, element("tr", {}, head.map((name, i) => element("th", {scope: "col", class: i ? "number" : null}, name)))),
    element("tbody", {}, classes.map((each) => element("tr", {}, element("th", {scope: "row"}, each.name),
      element("td", {class: "number"}, numberText(each.samples)),
      [each.precision, each.recall, each.f1].map((share) => element("td", {class: "number"}, percentText(share))))))));
}

function classBlock(run) {
  if (!run.confusion || run.confusion.classes.length === 0) return null;
  const drawn = run.confusion.classes.length <= MOST_CLASSES_DRAWN ? matrixTable(run.confusion) : null;
  const beside = run.confusion.classes.length <= 12;
  return [element("p", {class: "note"}, "Of the last --eval-only."),
          element("div", {class: beside ? "split" : "stack"}, drawn, classTable(run.confusion))];
}

function laterBlock(run) {
  if (run.later.length === 0) return null;
  const names = [...new Set(run.later.flatMap(({figures}) => Object.keys(figures)))].filter((name) => !["epoch"].includes(name));
  return element("div", {class: "scroll"}, element("table", {},
    element("thead", {}, element("tr", {}, names.map((name) => element("th", {scope: "col", class: "number"}, name)), element("th", {scope: "col"}, "data"), element("th", {scope: "col"}, "checkpoint"))),
    element("tbody", {}, run.later.map(({figures, source, checkpoint}) => element("tr", {},
      names.map((name) => element("td", {class: "number"}, numberText(figures[name]))),
      element("td", {class: "code"}, source || "the run's"), element("td", {class: "code"}, checkpoint || "the run's"))))));
}

// ---- recipe, warnings, machine ----------------------------------------------------------------

function recipeRows(rows, marked) {
  return element("table", {}, element("caption", {}, marked ? "What differs from the defaults." : "As by default."),
    element("thead", {}, element("tr", {}, ["key", "value", marked ? "default" : null].filter(Boolean).map((name) => element("th", {scope: "col"}, name)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, element("th", {scope: "row", class: "code"}, row.key), element("td", {class: "code"}, row.value),
      marked ? element("td", {class: "code soft"}, row.default) : null))));
}

function recipeBlock(run) {
  if (run.recipe.length === 0) return null;
  const changed = run.recipe.filter((row) => row.differs), rest = run.recipe.filter((row) => !row.differs);
  return [element("div", {class: "scroll", id: "recipe"}, recipeRows(changed, true)),
          element("details", {}, element("summary", {}, `All other keys (${rest.length})`), element("div", {class: "scroll"}, recipeRows(rest, false)))];
}

function warningsBlock(run) {
  if (run.log.warnings.length === 0) return null;
  return element("ul", {class: "warnings", id: "warnings"}, run.log.warnings.map(({time, text}) => element("li", {}, element("time", {}, time), text)));
}

function machineBlock(run) {
  if (run.log.start.length === 0) return null;
  return element("table", {id: "machine"}, element("tbody", {}, run.log.start.map(([word, text]) =>
    element("tr", {}, element("th", {scope: "row"}, word), element("td", {class: "code"}, text)))));
}
