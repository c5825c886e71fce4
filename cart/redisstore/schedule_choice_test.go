package redisstore_test

import (
	"math/rand/v2"
)

type chooser interface {
	choose(moves []move) int
}

// atRandom picks by weight, and prefers one request to the others for a few moves.
type atRandom struct {
	*rand.Rand
	favorite *request
}

// A favorite's moves weigh favor times more, for favorLife moves on average.
const (
	favor     = 10
	favorLife = 6
)

func (r *atRandom) choose(moves []move) int {
	if r.IntN(favorLife) == 0 {
		r.favorite = moves[r.IntN(len(moves))].of
	}
	sum := 0
	for _, m := range moves {
		sum += r.weight(m)
	}
	n := r.IntN(sum)
	for i, m := range moves {
		if n -= r.weight(m); n < 0 {
			return i
		}
	}
	panic("weights do not add up")
}

func (r *atRandom) weight(m move) int {
	if m.of != nil && m.of == r.favorite {
		return favor * m.weight
	}
	return m.weight
}

// inTurn enumerates all sequences of choices, one per run.
type inTurn struct {
	path   []int // the choices of this run
	counts []int // how many moves each choice had
	depth  int
}

func (t *inTurn) choose(moves []move) int {
	if t.depth == len(t.path) {
		t.path, t.counts = append(t.path, 0), append(t.counts, len(moves))
	}
	if t.counts[t.depth] != len(moves) {
		panic("the same choices led to another state than the run before")
	}
	t.depth++
	return t.path[t.depth-1]
}

// begin begins a run with the same choices.
func (t *inTurn) begin() *inTurn {
	t.depth = 0
	return t
}

// next prepares the next run; false when all sequences have been run.
func (t *inTurn) next() bool {
	for i := len(t.path) - 1; i >= 0; i-- {
		if t.path[i]+1 < t.counts[i] {
			t.path[i]++
			t.path, t.counts = t.path[:i+1], t.counts[:i+1]
			return true
		}
	}
	return false
}
