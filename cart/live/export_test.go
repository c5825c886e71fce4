package live

import (
	"runtime"
	"weak"
)

// Listeners returns how many listeners there are.
func (h *Hub) Listeners() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// LoseWhileSubscribing closes the feed of a listener before it handles the reply to a subscription that it has read.
func (l *Listener) LoseWhileSubscribing() {
	f := l.topic.feed
	f.close(errLost)
	f.subscribed(l.topic.ref.Channel(), true)
}

// Lose closes the feed of a listener. freed reports whether nothing refers to it any longer.
func (l *Listener) Lose() (freed func() bool) {
	f := weak.Make(l.topic.feed)
	l.topic.feed.close(errLost)
	return func() bool {
		runtime.GC()
		return f.Value() == nil
	}
}
