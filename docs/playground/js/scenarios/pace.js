// How long a scenario takes. All its waits come from one budget: the fewer its steps, the longer each stays.

const start = 300;     // ms from the click to the first step
const proof = 3_800;   // from the click to the step that proves the point
const whole = 10_500;  // from the click to the last step
const enough = 3_600;  // the longest that a step stays
const leading = 1 / 3; // the part of a step's time for its sentence, before the step runs. The rest is for its outcome

/**
 * paceOf returns times in ms: whole, from the click to the last step; and of(i), {lead, rest}: how long step i's
 * sentence and then its outcome stay.
 */
export function paceOf({ steps }) {
  const proves = steps.findIndex((step) => step.proves);
  const last = steps.length - 1;
  const before = Math.min(enough, (proof - start) / proves);
  const after = Math.min(enough, (whole - start - proves * before) / (last - proves));
  const stays = (i) => (i < proves ? before : after); // from this step to the next one
  return {
    whole: start + proves * before + (last - proves) * after,
    of: (i) => ({ lead: i === 0 ? start : stays(i - 1) * leading, rest: i === last ? 0 : stays(i) * (1 - leading) }),
  };
}
