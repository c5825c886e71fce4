// How long a scenario takes, in ms. A step that has a text to read waits before it runs and afterwards.

/** start is from the click to the first step. */
export const start = 300;

/** lead is for the sentence of a later step, before it runs. */
export const lead = 1_000;

/** rest is for a step's outcome. */
export const rest = 2_300;

/** lengthOf returns how long a scenario takes from the click to the last step. */
export const lengthOf = ({ steps }) => start + (steps.length - 1) * (lead + rest);
