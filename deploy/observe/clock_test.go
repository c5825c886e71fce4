package observe_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"commerce/deploy/ephemeral"
	"commerce/deploy/inspect"
	"commerce/deploy/observe"
)

// All real servers share this machine's clock. So the test sets the clock of a miniredis, and
// the clock that the check itself uses. That of a miniredis stands still while the check runs.
func TestClocks_FindTheOneThatIsOff(t *testing.T) {
	t.Parallel()
	const five, ok, warning = 5 * time.Second, inspect.OK, inspect.Warning
	postgres := ephemeral.Postgres(t)
	for _, test := range []struct {
		redis, machine time.Duration
		want           wrong // with the findings that are OK
		says           string
	}{
		{0, 0, wrong{"redis_clock": ok, "postgres_clock": ok, "machine_clock": ok}, "differs from the others by at most"},
		{five, 0, wrong{"redis_clock": warning, "postgres_clock": ok, "machine_clock": ok}, `[345]\.\d seconds ahead of the other clocks`},
		{-five, 0, wrong{"redis_clock": warning, "postgres_clock": ok, "machine_clock": ok}, `[567]\.\d seconds behind the other clocks`},
		{0, five, wrong{"redis_clock": ok, "postgres_clock": ok, "machine_clock": warning}, `[345]\.\d seconds ahead of the other clocks`},
		{0, -five, wrong{"redis_clock": ok, "postgres_clock": ok, "machine_clock": warning}, `[567]\.\d seconds behind the other clocks`},
		{five, five, wrong{"redis_clock": ok, "postgres_clock": warning, "machine_clock": ok}, `[567]\.\d seconds behind the other clocks`},
	} {
		url := ephemeral.Redis(t)
		if test.redis != 0 {
			server := miniredis.RunT(t)
			server.SetTime(time.Now().Add(test.redis))
			url = "redis://" + server.Addr()
		}
		got := findings(t, observe.Config{
			RedisURL: url, DatabaseURL: postgres, Now: func() time.Time { return time.Now().Add(test.machine) },
		}, inspect.Expect{})
		is, said := wrong{}, ""
		for _, f := range got {
			if strings.HasSuffix(f.Code, "_clock") {
				is[f.Code] = f.Level
				said += f.Message
			}
		}
		if diff := cmp.Diff(test.want, is); diff != "" || !regexp.MustCompile(test.says).MatchString(said) {
			t.Errorf("Redis is off by %v, this machine by %v (-want +got):\n%s%s", test.redis, test.machine, diff, said)
		}
	}
}
