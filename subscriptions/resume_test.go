package subscriptions_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

// cuttable returns a stream of a store after a cursor, and the cursor at its end.
func cuttable(t *testing.T, source subscriptions.Source, of *store.Store, f subscriptions.Format, after subscriptions.Cursor) ([]byte, subscriptions.Cursor) {
	t.Helper()
	var lines []byte
	s := subscriptions.Stream{Source: source, Store: of, After: after, Format: f, Continues: after != subscriptions.Cursor{}}
	for page, err := range s.Pages(t.Context(), wire.NewWriter(nil, locale.Ar, money.NewFormatter())) {
		if err != nil {
			t.Fatal(err)
		}
		lines, after = append(lines, page.Lines...), page.Next
	}
	return lines, after
}

func ofEachFormat(t *testing.T, test func(t *testing.T, f subscriptions.Format)) {
	for _, f := range []subscriptions.Format{subscriptions.NDJSON, subscriptions.CSV} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			test(t, f)
		})
	}
}

func TestResume_FindsTheLastCompletePageOfAStreamThatWasCutAnywhere(t *testing.T) {
	t.Parallel()
	all := sample.Subscriptions(now)
	last := &all[len(all)-1]
	last.ExternalCustomerID = "عميل \"1\"\r\nnext,\n"
	of := stores()[1]
	source := subscriptions.NewMemory(nil, all)
	ofEachFormat(t, func(t *testing.T, f subscriptions.Format) {
		one, after := cuttable(t, source, of, f, subscriptions.Cursor{})
		two, _ := cuttable(t, source, of, f, after)
		whole := append(one, two...)
		for cut := range len(whole) + 1 {
			var want subscriptions.Position
			switch {
			case cut == len(whole):
				want = subscriptions.Position{After: after, End: int64(cut)}
			case cut >= len(one):
				want = subscriptions.Position{After: after, End: int64(len(one))}
			}
			if at, err := subscriptions.Resume(bytes.NewReader(whole[:cut]), f, of.ID); err != nil || at != want {
				t.Fatalf("cut at %d of %d and %d: %v, %v; want %v", cut, len(one), len(whole), at, err, want)
			}
		}
	})
}

// The text of a cell is not a next line, even if it looks like one.
func TestResume_IsNotMisledByTextInCells(t *testing.T) {
	t.Parallel()
	all := sample.Subscriptions(now)
	of := stores()[1]
	source := subscriptions.NewMemory(nil, all)
	lines, _ := cuttable(t, source, of, subscriptions.CSV, subscriptions.Cursor{})
	next := lines[bytes.LastIndex(lines, []byte("next,")):]
	forged := bytes.Replace(lines, []byte("row,,6003,active,,"), fmt.Appendf(nil, "row,,6003,active,\"x\r\n%s\",", next), 1)
	if len(forged) <= len(lines) {
		t.Fatal("there is no subscription 6003")
	}
	forged = forged[:len(forged)-len(next)]
	if at, err := subscriptions.Resume(bytes.NewReader(forged), subscriptions.CSV, of.ID); err != nil || at != (subscriptions.Position{}) {
		t.Errorf("%v, %v; want no position, since the stream was cut in its first page", at, err)
	}
}

// A crash of the machine can leave anything after what was on disk.
func TestResume_DropsDamageAfterACompletePage(t *testing.T) {
	t.Parallel()
	source := subscriptions.NewMemory(nil, sample.Subscriptions(now))
	of := stores()[1]
	ofEachFormat(t, func(t *testing.T, f subscriptions.Format) {
		lines, after := cuttable(t, source, of, f, subscriptions.Cursor{})
		for _, damage := range []string{"\x00\x00\x00", "\x00\n\x00\n", "garbage\r\n" + string(lines), strings.Repeat("x", 10_000)} {
			at, err := subscriptions.Resume(strings.NewReader(string(lines)+damage), f, of.ID)
			if want := (subscriptions.Position{After: after, End: int64(len(lines))}); err != nil || at != want {
				t.Errorf("with %.10q: %v, %v; want %v", damage, at, err, want)
			}
		}
	})
}

func TestResume_RefusesWhatIsNoStreamOfTheStore(t *testing.T) {
	t.Parallel()
	source := subscriptions.NewMemory(nil, sample.Subscriptions(now))
	of := stores()[1]
	ndjson, _ := cuttable(t, source, of, subscriptions.NDJSON, subscriptions.Cursor{})
	csv, _ := cuttable(t, source, of, subscriptions.CSV, subscriptions.Cursor{})
	row, _, _ := bytes.Cut(ndjson, []byte("\n"))
	for name, call := range map[string]struct {
		content string
		format  subscriptions.Format
		store   int64
		want    error
	}{
		"CSV":                    {string(csv), subscriptions.NDJSON, 2, subscriptions.ErrOtherFormat},
		"the beginning of CSV":   {"kind,cur", subscriptions.NDJSON, 2, subscriptions.ErrOtherFormat},
		"NDJSON":                 {string(ndjson), subscriptions.CSV, 2, subscriptions.ErrOtherFormat},
		"another store's NDJSON": {string(ndjson), subscriptions.NDJSON, 1, subscriptions.ErrOtherStore},
		"another store's CSV":    {string(csv), subscriptions.CSV, 1, subscriptions.ErrOtherStore},
		"other columns":          {strings.Replace(string(csv), ",status,", ",", 1), subscriptions.CSV, 2, subscriptions.ErrOtherHeader},
		"text":                   {"notes", subscriptions.NDJSON, 2, subscriptions.ErrNotStream},
		"other lines":            {"{\"subscription\":1}\n", subscriptions.NDJSON, 2, subscriptions.ErrNotStream},
		"an empty line":          {"\n", subscriptions.CSV, 2, subscriptions.ErrNotStream},
		"a file of zeros":        {strings.Repeat("\x00", 1<<20), subscriptions.CSV, 2, subscriptions.ErrNotStream},
		"rows alone":             {strings.Repeat(string(row)+"\n", 1100), subscriptions.NDJSON, 2, subscriptions.ErrNotStream},
	} {
		if at, err := subscriptions.Resume(strings.NewReader(call.content), call.format, call.store); !errors.Is(err, call.want) || at.End != 0 {
			t.Errorf("%s: %v, %v; want %v", name, at, err, call.want)
		}
	}
}
