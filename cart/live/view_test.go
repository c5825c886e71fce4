package live

import (
	"errors"
	"testing"

	"commerce/deploy/assert"
)

func TestView_IsToldWhatASyncReadsUnlessAnAnnouncementIsNewer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		last, announced, read string // tags; announced during the sync, "" for nothing
		news, unclear         bool
	}{
		"the same":                   {last: "a.2.x", read: "a.2.x"},
		"a newer version":            {last: "a.2.x", read: "a.3.y", news: true},
		"an older one, by failover":  {last: "a.2.x", read: "a.1.y", news: true},
		"another with its version":   {last: "a.2.x", read: "a.2.y", news: true},
		"another cart":               {last: "a.2.x", read: "b.1.y", news: true},
		"older than the announced":   {last: "a.2.x", announced: "a.3.y", read: "a.2.x"},
		"newer than the announced":   {last: "a.2.x", announced: "a.3.y", read: "a.4.z", news: true},
		"another than the announced": {last: "a.2.x", announced: "b.1.y", read: "a.3.z", unclear: true},
	} {
		var v View
		v.Tell(SightingOf(test.last))
		told := v.Told()
		if test.announced != "" {
			v.Tell(SightingOf(test.announced))
		}
		news, err := v.IsNews(SightingOf(test.read), told)
		assert.That(t, news == test.news && errors.Is(err, errUnclear) == test.unclear, "%s: news: %t, %v", name, news, err)
	}
}
