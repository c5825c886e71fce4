package torture

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/schollz/progressbar/v3"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// The tests in this file run tests of other packages that show a part of a promise. They have
// only a long form, because `make verify` already runs the short form in the other packages.

func TestPromise03_SchedulesOfMergesLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	if !*long {
		t.Skip("make verify runs TestSchedules itself")
	}
	p := promised(t, 3, "a merge never loses or doubles a line, in any order of its steps", "0 wrong of 1,000,000 schedules")
	program := filepath.Join(t.TempDir(), "redisstore.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, "commerce/cart/redisstore").CombinedOutput()
	assert.Require(t, err == nil, "go test -c: %v\n%s", err, out)
	const wanted = 1_000_000
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestSchedules$", "-test.v", "-test.timeout", "0", "-schedules", strconv.Itoa(wanted))
	figures := p.follow(cmd, p.progress("schedules", wanted), regexp.MustCompile(`schedules: .*`))
	for _, name := range []string{"schedules", "wrong"} {
		_, found := figures[name]
		assert.That(t, found, "TestSchedules does not say how many %s", name)
	}
	if figures["wrong"] > 0 || figures["schedules"] < wanted {
		p.broke("%d of %d schedules were wrong", figures["wrong"], figures["schedules"])
	}
}

func TestPromise13_NoInputCausesA500(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	if !*long {
		t.Skip("make verify runs each fuzz target itself")
	}
	p := promised(t, 13, "no input causes a 500", "0 in ten minutes for each target (make fuzz)")
	cmd := exec.CommandContext(t.Context(), "sh", "deploy/fuzz.sh", "15s")
	cmd.Dir = "../../.."
	figures := p.follow(cmd, p.progress("fuzz targets", -1), regexp.MustCompile(`targets: .*`))
	assert.That(t, figures["targets"] != 0 && figures["executions"] != 0, "nothing was fuzzed")
	if figures["failures"] > 0 {
		p.broke("%d targets failed", figures["failures"])
	}
}

// follow runs a command, shows each line of its output as progress, and returns the counts in
// the matching line, such as "name: 1, other: 2". It adds them to the row.
func (p *promise) follow(cmd *exec.Cmd, bar *progressbar.ProgressBar, summary *regexp.Regexp) map[string]int64 {
	p.t.Helper()
	output := assert.Must(cmd.StdoutPipe())(p.t)
	cmd.Stderr = os.Stderr
	assert.NoError(p.t, cmd.Start())
	figures := map[string]int64{}
	var said strings.Builder
	for lines := bufio.NewScanner(io.TeeReader(output, &said)); lines.Scan(); {
		_ = bar.Add(1)
		for part := range strings.SplitSeq(summary.FindString(lines.Text()), ", ") {
			name, count, _ := strings.Cut(part, ": ")
			if n, err := strconv.ParseInt(count, 10, 64); err == nil {
				figures[name] = n
				p.counted(name, n)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		p.broke("%v: %v\n%s", cmd, err, said.String())
	}
	return figures
}
