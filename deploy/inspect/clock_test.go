package inspect

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// All real servers share this machine's clock. So the test sets the clock of a miniredis, and
// the clock that the check itself uses. That of a miniredis stands still while the check runs.
func TestClocks_FindTheOneThatIsOff(t *testing.T) {
	t.Parallel()
	const five = 5 * time.Second
	postgres := ephemeral.Postgres(t)
	for _, test := range []struct {
		redis, machine time.Duration
		wrong, says    string
	}{
		{0, 0, "", "differs from the others by at most"},
		{five, 0, "redis_clock", `[345]\.\d seconds ahead of the other clocks`},
		{-five, 0, "redis_clock", `[4567]\.\d seconds behind the other clocks`},
		{0, five, "machine_clock", `[345]\.\d seconds ahead of the other clocks`},
		{0, -five, "machine_clock", `[4567]\.\d seconds behind the other clocks`},
		{five, five, "postgres_clock", `[4567]\.\d seconds behind the other clocks`},
	} {
		url := ephemeral.Redis(t)
		if test.redis != 0 {
			server := miniredis.RunT(t)
			server.SetTime(time.Now().Add(test.redis))
			url = "redis://" + server.Addr()
		}
		got, err := Servers(t.Context(), Config{
			RedisURL: url, DatabaseURL: postgres, Now: func() time.Time { return time.Now().Add(test.machine) },
		})
		want, is, said := wrong{"redis_clock": OK, "postgres_clock": OK, "machine_clock": OK}, wrong{}, ""
		if test.wrong != "" {
			want[test.wrong] = Warning
		}
		for _, f := range got {
			if strings.HasSuffix(f.Code, "_clock") {
				is[f.Code] = f.Level
				said += f.Message
			}
		}
		assert.Equal(t, is, want, "%+v: %v", test, err)
		assert.That(t, err == nil && regexp.MustCompile(test.says).MatchString(said), "%+v: %v, %s", test, err, said)
	}
}

func TestClocks_TolerateSlowAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ahead, within time.Duration
		want          Level
	}{
		{900 * time.Millisecond, 0, OK},
		{1100 * time.Millisecond, 0, Warning},
		{-1100 * time.Millisecond, 0, Warning},
		{1100 * time.Millisecond, 200 * time.Millisecond, OK},
	} {
		var servers []*report
		for _, c := range []*clock{{code: "redis_clock", known: true, ahead: test.ahead, within: test.within}, {code: "postgres_clock", known: true}} {
			servers = append(servers, &report{server: "a:1", clock: c})
		}
		for _, r := range judgeClocks(servers) {
			f, want := r.findings[0], wrong{"redis_clock": test.want, "postgres_clock": OK, "machine_clock": OK}
			assert.Equal(t, f.Level, want[f.Code], "%+v: %+v", test, f)
		}
	}
}
