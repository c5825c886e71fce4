// The six seconds of the stage, as one table: what each actor looks like at which time. All
// animations have the same length, so that currentTime shows any moment.

const length = 6000; // ms

const away = { opacity: 0 };
const there = { opacity: 1 };
const client = { insetInlineStart: "0%" };
const server = { insetInlineStart: "100%" };
const between = { insetInlineStart: "45%" };

const appears = (at, fade = 150) => [[at, away], [at + fade, there]];
const until = (at) => [[at, there], [at + 1, away]];
const pops = (at) => [[at, { ...away, scale: 1 }], [at + 1, { ...there, scale: 1.6 }], [at + 350, { ...there, scale: 1 }]];
const during = (from, to) => [...appears(from), [to - 150, there], [to, away]];
const travels = (at, start, end) => [
  [at, { ...start, ...away }], [at + 60, { ...start, ...there, easing: "ease-in-out" }],
  [at + 600, { ...end, ...there }], [at + 700, { ...end, ...away }],
];
const turns = (at, tone) => [
  [at, { borderColor: "var(--line)", backgroundColor: "var(--ground)" }],
  [at + 200, { borderColor: `var(--${tone})`, backgroundColor: `var(--${tone}-soft)` }],
];

const timeline = {
  tap: [[450, { scale: 1 }], [600, { scale: 0.85 }], [750, { scale: 1 }]],
  request: [...travels(700, client, server), ...travels(3150, client, server)],
  empty: until(1350),
  kept: pops(1350),
  first: [...pops(1350), ...until(3800)],
  reply: [...travels(1750, server, between), ...travels(4050, server, client)],
  lost: [...pops(2350), [3000, { ...there, scale: 1 }], [3150, { ...away, scale: 1 }]],
  again: [[2900, { ...away, rotate: "0deg" }], [3050, { ...there, rotate: "0deg" }], [3700, { ...there, rotate: "-360deg" }], [3850, { ...away, rotate: "-360deg" }]],
  second: pops(3800),
  right: turns(3800, "good"),
  wrong: turns(3800, "bad"),
  replayed: appears(3900),
  upshot: [[4850, { ...away, scale: 0.6 }], [5150, { ...there, scale: 1 }]],
  captionTap: [[0, there], [1500, there], [1650, away]],
  captionLost: during(1650, 3000),
  captionAgain: during(3000, 4000),
  captionSame: appears(4000),
};

/** animate returns the animations of a stage, paused at their start. */
export function animate(stage) {
  return [...stage.querySelectorAll("[data-actor]")].map((actor) => {
    const animation = actor.animate(framesOf(timeline[actor.dataset.actor]), { duration: length, fill: "both" });
    animation.pause();
    return animation;
  });
}

/** framesOf makes keyframes. Before its first moment and after its last, an actor does not change. */
function framesOf(moments) {
  return [[0, moments[0][1]], ...moments, [length, moments.at(-1)[1]]].map(([at, look]) => ({ offset: at / length, ...look }));
}
