package torture

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"commerce/deploy/assert"
)

// promise collects the figures of a test. Its methods are safe for concurrent use.
type promise struct {
	t testing.TB

	mu  sync.Mutex
	row row
}

type row struct {
	Number  int      `json:"promise"`
	Promise string   `json:"text"`
	ToReach string   `json:"to_reach"`
	Figures []figure `json:"figures"`
	Broken  int      `json:"broken"` // how often the promise was broken
	Kept    bool     `json:"kept"`   // also false if the test failed for another reason
	Seconds float64  `json:"seconds"`
	Long    bool     `json:"long"`
	Date    string   `json:"date"`
}

type figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit,omitempty"`   // "" for a count
	Detail bool    `json:"detail,omitempty"` // left out of torture.md
}

func (f figure) String() string {
	value := message.NewPrinter(language.English).Sprint(number.Decimal(f.Value))
	if f.Unit != "" {
		value += " " + f.Unit
	}
	return f.Name + ": " + value
}

// promised starts the row of a promise. The row enters the table when the test ends.
func promised(t testing.TB, number int, text, toReach string) *promise {
	p := &promise{t: t, row: row{Number: number, Promise: text, ToReach: toReach, Long: *long}}
	began := time.Now()
	p.row.Date = began.Format(time.DateOnly)
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.row.Kept = !t.Failed()
		p.row.Seconds = time.Since(began).Round(100 * time.Millisecond).Seconds()
		results.add(p.row)
	})
	return p
}

func sized[T any](short, inLong T) T {
	if *long {
		return inLong
	}
	return short
}

func (p *promise) broke(format string, arguments ...any) {
	p.t.Helper()
	p.t.Errorf(format, arguments...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.row.Broken++
}

func (p *promise) counted(name string, n int64) { p.add(figure{Name: name, Value: float64(n)}) }

// lasted adds a duration, in milliseconds.
func (p *promise) lasted(name string, d time.Duration) {
	p.add(figure{Name: name, Value: milliseconds(d), Unit: "ms"})
}

// detail adds a value that only torture.json has. It shows how hard the test tried, not whether the promise was kept.
func (p *promise) detail(name string, value float64, unit string) {
	p.add(figure{Name: name, Value: value, Unit: unit, Detail: true})
}

// tried adds how often something happened that the test must have tried. If it never did, the test shows nothing, and fails.
func (p *promise) tried(name string, times int64) {
	p.t.Helper()
	p.detail(name, float64(times), "")
	assert.That(p.t, times > 0, "%s: none, so the test shows nothing", name)
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond).Microseconds()) / 1000
}

func (p *promise) add(f figure) {
	p.t.Helper()
	p.t.Log(f)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.row.Figures = append(p.row.Figures, f)
}

// progress shows a bar in a terminal if the run writes a table: one test at a time.
func (p *promise) progress(what string, total int) *progressbar.ProgressBar {
	visible := *out != "" && term.IsTerminal(int(os.Stderr.Fd()))
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetVisibility(visible),
		progressbar.OptionSetDescription(fmt.Sprintf("promise %d: %s", p.row.Number, what)),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish())
	p.t.Cleanup(func() { _ = bar.Finish() })
	return bar
}
