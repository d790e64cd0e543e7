// The state that is shown: slider, play, and what else can be chosen.

const slider = byId("slider");
const play = byId("play");
const folded = byId("values-folded");
let playing = 0;
let wanted = -1;

// Answers when everything is drawn; how long it took is an entry of the page's performance.
async function show(state) {
  const began = performance.now();
  shown = state;
  if (folded.open) showValues(state);
  if (slider) {
    const words = `${digits(times[state])} s`;
    slider.value = String(state);
    slider.setAttribute("aria-valuetext", words);
    byId("time").textContent = words;
  }
  if (scene) drawScene(state);
  await Promise.all([...seen].map(moveCursor));
  document.body.dataset.shown = String(state);
  performance.measure("state shown", { start: began });
}

// What is out of sight is moved when it comes into it.
const seen = new Set();
const moveCursor = (figure) =>
  Plotly.relayout(figure, { "shapes[0].x0": times[shown], "shapes[0].x1": times[shown] });

function watchFigures() {
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) seen.delete(target);
      else if (!seen.has(target)) {
        seen.add(target);
        moveCursor(target);
      }
    }
  });
  for (const figure of [curves, ranks, ...drives]) if (figure) watcher.observe(figure);
}

const later = (t) => {
  let k = shown;
  while (k < states - 1 && times[k + 1] <= t) k += 1;
  return k;
};

function stop() {
  playing += 1;
  play.textContent = "Play";
  byId("time").setAttribute("aria-live", "polite");
}

async function run() {
  playing += 1;
  const own = playing;
  play.textContent = "Pause";
  // Read out at every state it would not be understood.
  byId("time").setAttribute("aria-live", "off");
  if (shown === states - 1) await show(0);
  let last = performance.now(), time = times[shown];
  const step = async () => {
    if (own !== playing) return;
    const now = performance.now();
    time += ((now - last) / 1000) * Number(byId("speed").value);
    last = now;
    const state = later(time);
    if (state !== shown) await show(state);
    if (own !== playing) return;
    if (state === states - 1) stop();
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

function listen() {
  if (slider) {
    slider.addEventListener("input", () => {
      stop();
      // Moves that come faster than the screen are drawn as one.
      if (wanted < 0) requestAnimationFrame(() => { show(wanted); wanted = -1; });
      wanted = Number(slider.value);
    });
    play.addEventListener("click", () => (play.textContent === "Play" ? run() : stop()));
  }
  folded.addEventListener("toggle", () => { if (folded.open) showValues(shown); });
  if (!stage) return;
  byId("arrows").addEventListener("change", (event) => {
    arrows = event.target.value;
    drawScene(shown);
  });
  byId("length").addEventListener("input", (event) => {
    factor = 10 ** Number(event.target.value);
    drawScene(shown);
  });
  byId("names").addEventListener("change", (event) => {
    nameThem(event.target.value);
    draw();
  });
  byId("reset").addEventListener("click", () => {
    resetView();
    turnLabels();
    draw();
  });
}

// The mechanism stands before what draws curves has been read.
async function begin() {
  if (scene) makeScene();
  showValues(0);
  if (stage) nameThem("joints");
  listen();
  await show(0);
  performance.mark("mechanism shown");
}

async function beginCurves() {
  await Promise.all(drives.map(drawDrive));
  if (curves) await makeCurves();
  if (ranks) await makeRanks();
  watchFigures();
  document.body.dataset.ready = "true";
  performance.mark("ready");
}

const begun = begin();
document.addEventListener("DOMContentLoaded", () => begun.then(beginCurves));
