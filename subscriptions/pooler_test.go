package subscriptions_test

import (
	"os"
	command "os/exec"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func skipBehindPooler(t *testing.T) {
	t.Helper()
	if os.Getenv(ephemeral.EnvPooler) != "" {
		t.Skip("needs a direct connection")
	}
}

// All of these tests pass behind a pooler, except for the slow ones and for those that need a direct connection.
func TestAll_PassBehindAPooler(t *testing.T) {
	slow(t)
	for _, mode := range []string{"transaction", "session"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			tests := command.CommandContext(t.Context(), assert.Must(os.Executable())(t), "-test.short")
			tests.Env = append(os.Environ(), ephemeral.EnvPooler+"="+mode)
			out, err := tests.CombinedOutput()
			assert.That(t, err == nil, "%v:\n%s", err, out)
		})
	}
}
