package torture

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// The fuzz targets of other packages. This promise has only a long form, because `make verify` already runs the short
// form in the other packages.
func TestPromise13_NoInputCausesA500(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	if !*long {
		t.Skip("make verify runs each fuzz target itself")
	}
	p := promised(t, 13, "no input causes a 500", "0 in 15 s for each target (make fuzz: ten minutes)")
	cmd := exec.CommandContext(t.Context(), "sh", "deploy/fuzz.sh", "15s")
	cmd.Dir, cmd.Stderr = "../../..", os.Stderr
	said, err := cmd.Output()
	if err != nil {
		p.broke("%v: %v\n%s", cmd, err, said)
	}
	summary := said[max(0, bytes.LastIndex(said, []byte("targets: "))):]
	figures := map[string]int64{}
	for _, figure := range regexp.MustCompile(`(\w+): (\d+)`).FindAllSubmatch(summary, -1) {
		name := string(figure[1])
		figures[name] = assert.Must(strconv.ParseInt(string(figure[2]), 10, 64))(t)
		p.counted(name, figures[name])
	}
	assert.That(t, figures["targets"] != 0 && figures["executions"] != 0, "nothing was fuzzed")
	if figures["failures"] > 0 {
		p.broke("%d targets failed", figures["failures"])
	}
}
