package torture

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"commerce/deploy/connect"
)

var (
	long = flag.Bool("long", false, "run the long form of each promise")
	out  = flag.String("out", "", "directory for the table, as torture.json and torture.md")
)

func TestMain(m *testing.M) {
	flag.Parse()
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)}) // it would report every failed dial
	zerolog.SetGlobalLevel(zerolog.Disabled)                              // toxiproxy would write traces to standard error
	status := m.Run()
	_ = os.RemoveAll(programDir())
	if *out != "" && len(results.rows) == 0 {
		fmt.Fprintln(os.Stderr, "torture: no promise was tested. PROMISE is a number of two digits, such as 07. 13 has only a long form")
		status = max(status, 1)
	}
	if err := results.publish(os.Stdout, *out); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}
