package live

import "slices"

// Listener receives the states of a cart. Its methods are not safe for concurrent use.
type Listener struct {
	hub           *Hub
	topic         *topic
	started, gone bool // between these, it gets sightings
	waiting       []Sighting
	wake          func()
}

// Close ends listening.
func (l *Listener) Close() {
	h, t := l.hub, l.topic
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(t.listeners, l)
	if i < 0 {
		return
	}
	t.listeners = slices.Delete(t.listeners, i, i+1)
	if h.count--; h.count == 0 {
		h.stop()
		clear(h.feeds)
	}
	if len(t.listeners) == 0 {
		delete(h.topics, t.ref.Channel())
		if t.feed != nil {
			go t.feed.leave(t.ref.Channel())
		}
	}
}

// Wake sets the function that is called when sightings wait. It must not block.
func (l *Listener) Wake(f func()) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.wake = f
	f()
}

// Next returns the next sighting. ok is false if none waits. Error: ErrBehind.
func (l *Listener) Next() (s Sighting, ok bool, err error) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	switch {
	case len(l.waiting) > maxWaiting:
		return Sighting{}, false, ErrBehind
	case len(l.waiting) == 0:
		l.waiting = nil // an idle listener needs no memory for them
		return Sighting{}, false, nil
	}
	s, l.waiting = l.waiting[0], l.waiting[1:]
	return s, true, nil
}

func (l *Listener) put(s Sighting) {
	if l.gone || len(l.waiting) > maxWaiting {
		return
	}
	l.waiting, l.gone = append(l.waiting, s), s.Gone
	l.wake()
}
