package figures_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/cart/money"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/figures"
	"commerce/subscriptions/history"
	"commerce/subscriptions/suite"
)

// monthly are a month's figures in one currency, as a client decodes them.
type monthly struct {
	Month, Currency string
	Complete        bool
	Figures         map[string]json.Number // amounts and counts; nil: all are null
}

func (m *monthly) UnmarshalJSON(b []byte) error {
	var row map[string]any
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	err := decoder.Decode(&row)
	*m = monthly{Month: row["month"].(string), Currency: row["currency"].(string), Complete: row["complete"].(bool)}
	for name, value := range row {
		if figure, ok := value.(json.Number); ok {
			if m.Figures == nil {
				m.Figures = map[string]json.Number{}
			}
			m.Figures[name] = figure
		}
	}
	return err
}

// metrics requests a store's metrics, which must succeed.
func metricsOf(t *testing.T, b suite.Bundle, store int64, query string) []monthly {
	t.Helper()
	w := b.Do("/subscriptions/metrics"+query, store, "en")
	var body struct{ Data struct{ Data []monthly } }
	err := json.Unmarshal(w.Body.Bytes(), &body)
	assert.Require(t, err == nil && w.Code == http.StatusOK, "GET /subscriptions/metrics%s: %d %s (%v)", query, w.Code, w.Body, err)
	return body.Data.Data
}

// lives are the states of subscriptions, each oldest first.
type lives [][]history.State

var recording = time.Date(2024, 6, 10, 12, 0, 0, 0, time.UTC) // 18 months before now

// someLives returns random lives of n subscriptions from the beginning of recording until now. Many
// states begin or end at the boundary of a month.
func someLives(r *rand.Rand, n int) lives {
	all := make(lives, n)
	for id := range all {
		at := recording
		s := history.State{Baseline: r.IntN(3) == 0}
		s.WasBearing = r.IntN(2) == 0 && (s.Baseline || r.IntN(2) == 0)
		if !s.Baseline || r.IntN(20) == 0 { // few baselines are of a later time, as while a database is copied
			at = at.Add(time.Duration(r.Int64N(int64(suite.Now.Sub(recording)))))
		}
		for at.Before(suite.Now) {
			s.At = at
			all[id] = append(all[id], anyChange(r, &s))
			s.Baseline, s.WasBearing = r.IntN(50) == 0, s.Status == "" && r.IntN(2) == 0
			at = at.Add(time.Duration(r.Int64N(int64(100 * 24 * time.Hour))))
			if r.IntN(4) == 0 {
				at = time.Date(at.Year(), at.Month()+1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Duration(r.IntN(2)) * time.Microsecond)
			}
		}
	}
	return all
}

// anyChange alters a state, and returns it.
func anyChange(r *rand.Rand, s *history.State) history.State {
	if s.Deleted = !s.Baseline && s.Status != "" && r.IntN(12) == 0; s.Deleted {
		s.Status = ""
		return history.State{At: s.At, Deleted: true}
	}
	if s.Status == "" || r.IntN(2) == 0 {
		s.Status = subscriptions.Statuses[r.IntN(4)*r.IntN(3)%len(subscriptions.Statuses)]
		if r.IntN(2) == 0 {
			s.Status = subscriptions.Active
		}
	}
	if s.Currency == "" || r.IntN(8) == 0 {
		s.Currency = []string{"SAR", "SAR", "JPY", "KWD"}[r.IntN(4)]
	}
	if s.Duration == "" || r.IntN(3) == 0 {
		s.Duration, s.Price = durations[r.IntN(len(durations))], money.Amount(r.Int64N(2_000)*r.Int64N(500))
	}
	return *s
}

// write makes the lives the only history, of store 1.
func (all lives) write(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	suite.Exec(t, pool, "TRUNCATE subscription_states")
	type row struct {
		id    int64
		moves bool
		history.State
	}
	var rows []row
	for id, states := range all {
		var last history.State
		for _, s := range states {
			moves := !s.Baseline && (s.Deleted || s.Status != last.Status || s.Price != last.Price || s.Currency != last.Currency || s.Duration != last.Duration)
			rows = append(rows, row{int64(id + 1), moves, s})
			last = s
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.At.Compare(b.At) })
	orNull := func(s row, value any) any {
		if s.Deleted {
			return nil
		}
		return value
	}
	_, err := pool.CopyFrom(t.Context(), pgx.Identifier{"subscription_states"},
		[]string{"store_id", "subscription_id", "recorded_at", "first", "was_bearing", "moves_revenue", "status", "price_amount", "currency", "duration"},
		pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
			s := rows[i]
			return []any{
				1, s.id, s.At, s.Baseline, s.WasBearing, s.moves, orNull(s, string(s.Status)), orNull(s, int64(s.Price)), orNull(s, s.Currency), orNull(s, string(s.Duration)),
			}, nil
		}))
	assert.NoError(t, err)
	suite.Exec(t, pool, "ANALYZE subscription_states")
}

// stated is a source whose history is that of the lives.
type stated struct {
	suite.Source
	lives
}

func (s stated) Movements(context.Context, int64) ([]figures.Movement, error) {
	return figures.Movements(s.lives)
}

// tally has what a store's subscriptions in one currency did in a month.
type tally struct {
	start, end big.Rat
	active     int64
	moved      map[string]*big.Rat // what was lost is negative
	moves      map[string]int64
}

func (c *tally) move(name string, amount *big.Rat) {
	if c.moved[name] == nil {
		c.moved[name] = new(big.Rat)
	}
	c.moved[name].Add(c.moved[name], amount)
	c.moves[name]++
}

// moveNames are in the order in which their sums are rounded.
var moveNames = []string{"new", "imported", "reactivated", "expansion", "contraction", "paused", "churned"}

// recount replays the lives in one month after another, in fractions.
func (all lives) recount() (want []monthly) {
	for from := time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC); from.Before(suite.Now); from = from.AddDate(0, 1, 0) {
		until := from.AddDate(0, 1, 0)
		in := map[string]*tally{}
		for _, currency := range []string{"", "JPY", "KWD", "SAR"} {
			in[currency] = &tally{moved: map[string]*big.Rat{}, moves: map[string]int64{}}
		}
		for _, states := range all {
			replay(states, from, until, in)
		}
		for _, currency := range []string{"JPY", "KWD", "SAR"} {
			want = append(want, in[currency].figures(currency, from.Format("2006-01"), until.Before(suite.Now)))
		}
	}
	return want
}

// replay adds what one subscription did from a time until another.
func replay(states []history.State, from, until time.Time, in map[string]*tally) {
	revenueOf := func(s history.State) (string, *big.Rat) {
		if s.Status != "active" && s.Status != "past_due" {
			return "", new(big.Rat)
		}
		return s.Currency, big.NewRat(int64(s.Price), int64(s.Duration.Months()))
	}
	var last history.State
	bore := false
	for i, s := range states {
		if i == 0 && s.Baseline || s.At.Before(from) {
			last = s
			currency, _ := revenueOf(s)
			bore = bore || s.WasBearing || currency != ""
		}
	}
	was, before := revenueOf(last)
	in[was].start.Add(&in[was].start, before)
	for i, s := range states {
		if i == 0 && s.Baseline || s.At.Before(from) || !s.At.Before(until) {
			continue
		}
		is, after := revenueOf(s)
		gained, lost := in[is], new(big.Rat).Neg(before)
		change := new(big.Rat).Sub(after, before)
		switch {
		case is == was && change.Sign() > 0:
			gained.move("expansion", change)
		case is == was && change.Sign() < 0:
			gained.move("contraction", change)
		case is == was:
		case was == "" && s.WasBearing && !s.Baseline:
			gained.move("imported", after)
		case was == "" && bore:
			gained.move("reactivated", after)
		case was == "":
			gained.move("new", after)
		case is == "" && s.Status == "paused":
			in[was].move("paused", lost)
		case is == "":
			in[was].move("churned", lost)
		default:
			in[was].move("contraction", lost)
			gained.move("expansion", after)
		}
		bore = bore || s.WasBearing || is != ""
		was, before = revenueOf(s)
	}
	in[was].end.Add(&in[was].end, before)
	in[was].active++
}

// figures rounds sums to monthly, in the order of the movements.
func (c *tally) figures(currency, month string, complete bool) monthly {
	sum := new(big.Rat).Set(&c.start)
	f := monthly{Month: month, Currency: currency, Complete: complete, Figures: map[string]json.Number{
		"mrr": inMajor(nearest(&c.end), currency), "subscriptions": json.Number(strconv.FormatInt(c.active, 10)),
	}}
	for _, name := range moveNames {
		before := nearest(sum)
		if moved := c.moved[name]; moved != nil {
			sum.Add(sum, moved)
		}
		change := nearest(sum) - before
		f.Figures[name] = inMajor(max(change, -change), currency)
		f.Figures[name+"_subscriptions"] = json.Number(strconv.FormatInt(c.moves[name], 10))
	}
	if sum.Cmp(&c.end) != 0 {
		panic(fmt.Sprintf("%s in %s: the movements lead from %s to %s, not to %s", currency, month, &c.start, sum, &c.end))
	}
	return f
}

// prunedBefore returns the lives with what is older than a time folded into one state.
func (all lives) prunedBefore(cutoff time.Time) lives {
	pruned := make(lives, len(all))
	for id, states := range all {
		older := 0
		for older < len(states) && states[older].At.Before(cutoff) {
			older++
		}
		if pruned[id] = slices.Clone(states[max(0, older-1):]); older > 0 {
			first := &pruned[id][0]
			first.Baseline = true
			first.WasBearing = slices.ContainsFunc(states[:older], func(s history.State) bool {
				return s.WasBearing || s.Status == "active" || s.Status == "past_due"
			})
		}
	}
	return pruned
}

// slowly is a source that takes a second.
type slowly struct{ stated }

func (s slowly) Movements(ctx context.Context, store int64) ([]figures.Movement, error) {
	time.Sleep(time.Second)
	return s.stated.Movements(ctx, store)
}

// A caller must not share the figures that another one asked for before the month began.
func TestMetrics_HaveTheMonthThatBeganWhileTheyWereMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := slowly{stated{lives: lives{{{
			At: time.Now(), Status: subscriptions.Active, Currency: "SAR", Duration: "monthly", Price: 100,
		}}}}}
		config := suite.ConfigOf(source)
		config.Now = time.Now
		b := suite.Bundle{Engine: suite.NewEngine(config, figures.Calls(figures.Config{Source: source}))}
		time.Sleep(time.Until(time.Date(2000, 1, 31, 23, 59, 59, 500_000_000, time.UTC)))
		go b.Do("/subscriptions/metrics", 1, "en")
		time.Sleep(500 * time.Millisecond)
		got := metricsOf(t, b, 1, "?from=2000-01")
		assert.Require(t, len(got) == 2, "got %+v", got)
		assert.That(t, got[0].Complete && got[1].Figures != nil, "the running month has no figures: %+v", got)
	})
}

func TestMetrics_EqualARecount(t *testing.T) {
	suite.Slow(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	all := someLives(rand.New(rand.NewPCG(seed, 0)), 10_000)
	want := all.recount()
	wantIdentity(t, want)
	pool := ephemeral.MigratedPool(t)
	cutoff := time.Date(2025, 2, 11, 0, 0, 0, 0, time.UTC)
	for name, kept := range map[string]lives{"2024-06": all, "2025-03": all.prunedBefore(cutoff)} {
		kept.write(t, pool)
		for _, source := range []suite.Source{suite.Patient(pool), stated{lives: kept}} {
			b := suite.NewBundle(source)
			ephemeral.Eventually(t, "figures", func() bool { // the race detector makes them slower than a caller waits
				return b.Do("/subscriptions/metrics?from="+name, 1, "en").Code == http.StatusOK
			})
			got := metricsOf(t, b, 1, "?from="+name)
			at := slices.IndexFunc(want, func(f monthly) bool { return f.Month == name })
			assert.Equal(t, got, want[at:], "%T, from %s", source, name)
		}
	}
}

// The rules of SQL are those of memory, and nothing else in the database knows which statuses bear revenue.
func TestRules_OfSQLAreThoseOfMemory(t *testing.T) {
	t.Parallel()
	pool := ephemeral.MigratedPool(t)
	ask := func(sql string, into any, args ...any) {
		t.Helper()
		err := pool.QueryRow(t.Context(), sql, args...).Scan(into)
		assert.Require(t, err == nil, "%s of %v: %v", sql, args, err)
	}
	for _, duration := range append(durations, "weekly", "") {
		var months int
		ask("SELECT coalesce(months_of($1), 0)", &months, string(duration))
		assert.Equal(t, months, duration.Months(), "months of %q", duration)
	}
	trialEnd := suite.Now
	for _, status := range append(subscriptions.Statuses[:], "frozen") {
		var bears bool
		ask("SELECT bears_revenue($1)", &bears, string(status))
		assert.Equal(t, bears, history.Bears(status), "%s bears revenue", status)
		for _, trial := range []*time.Time{nil, &trialEnd} {
			for _, paid := range []time.Duration{-time.Second, 0, time.Second} {
				s := subscriptions.Subscription{StoreID: 1, ID: 1, Status: status, EndsAt: trialEnd.Add(paid)}
				if trial != nil {
					s.TrialEndsAt = *trial
				}
				begun := history.NewMemory(subscriptions.NewMemory(nil, []subscriptions.Subscription{s})).States(1)[0][0]
				var bore bool
				ask("SELECT bore_revenue($1, $2, $3)", &bore, string(status), s.EndsAt, trial)
				assert.Equal(t, bore, begun.WasBearing, "%s, trial %v, paid for %s more: bore revenue", status, trial, paid)
			}
		}
	}
	var others int
	ask(`SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname <> 'bears_revenue'
		AND (prosrc LIKE '%past_due%' OR pg_get_function_sqlbody(oid) LIKE '%past_due%')`, &others)
	assert.Equal(t, others, 0, "other functions with the rule")
}

// wantIdentity checks that the moves of each month are the difference to the month before: in each currency, and the number
// of subscriptions in all of them.
func wantIdentity(t *testing.T, all []monthly) {
	t.Helper()
	number := func(f monthly, name string) *big.Rat {
		n, _ := new(big.Rat).SetString(string(f.Figures[name]))
		return n
	}
	before, moved, active := map[string]*big.Rat{}, map[string]*big.Rat{}, map[string]*big.Rat{} // by currency, and by month
	for _, f := range all {
		if active[f.Month] == nil {
			active[f.Month], moved[f.Month] = new(big.Rat), new(big.Rat)
		}
		active[f.Month].Add(active[f.Month], number(f, "subscriptions"))
		sum := before[f.Currency]
		if sum == nil {
			before[f.Currency] = number(f, "mrr")
			continue
		}
		for at, name := range moveNames {
			amount, count := number(f, name), number(f, name+"_subscriptions")
			if at >= 4 {
				amount.Neg(amount)
				count.Neg(count)
			}
			if sum.Add(sum, amount); name != "expansion" && name != "contraction" {
				moved[f.Month].Add(moved[f.Month], count)
			}
		}
		assert.That(t, sum.Cmp(number(f, "mrr")) == 0, "%s in %s: the moves lead to %s, not to %s", f.Currency, f.Month, sum, f.Figures["mrr"])
	}
	months := slices.Sorted(maps.Keys(active))
	for i, month := range months[1:] {
		sum := new(big.Rat).Add(active[months[i]], moved[month])
		assert.That(t, sum.Cmp(active[month]) == 0, "%s: the moves lead to %s subscriptions, not to %s", month, sum, active[month])
	}
}

// The columns are the members of JSON, in their order, and the cells their values.
func TestMetrics_CSVHasTheValuesOfJSON(t *testing.T) {
	t.Parallel()
	source := stated{lives: someLives(rand.New(rand.NewPCG(7, 8)), 300)}
	b := suite.NewBundle(source)
	for _, query := range []string{"?from=2024-03", "?to=2024-04"} { // recording begins in June
		var body struct {
			Data struct{ Data []json.RawMessage }
		}
		assert.NoError(t, json.Unmarshal(b.Do("/subscriptions/metrics"+query, 1, "en").Body.Bytes(), &body))
		table := suite.TableOf(t, b.Accepting("application/json;q=0.5, text/csv", "/subscriptions/metrics"+query, 1, "en").Body.String())
		assert.Require(t, len(table) == 1+len(body.Data.Data), "%d rows for %d", len(table), len(body.Data.Data))
		for i, row := range body.Data.Data {
			values, at := map[string]string{}, -1
			suite.Flatten(t, values, "", row)
			for column, name := range table[0] {
				assert.Equal(t, table[1+i][column], values[name], "%s of row %d", name, i)
				next := strings.Index(string(row), `"`+name+`":`)
				assert.That(t, next > at, "%s is not there, or not in the order of %s", name, row)
				at = next
			}
			assert.Equal(t, strings.Count(string(row), `":`), len(table[0]), "members of %s", row)
		}
	}
}

func TestMetrics_NameWhatTheyRefuse(t *testing.T) {
	t.Parallel()
	b := suite.NewBundle(suite.NewMemory(nil, nil))
	for query, want := range map[string][]string{
		"from=2025-1":                     {"from"},
		"from=2025-13&to=2025-00":         {"from", "to"},
		"from=0000-01&to=2025-10-01":      {"from", "to"},
		"from=&to=":                       {"from", "to"},
		"from=2025-12":                    {"from"}, // in the future
		"to=2025-12":                      {"to"},
		"from=2025-11&to=2025-10":         {"from"},
		"from=2022-11":                    {"from"}, // 37 months
		"from=2019-01&to=2022-01":         {"from"},
		"from=2025-01&from=2025-02":       {"from"},
		"from=2025-11&to=2025-10&month=1": {"month"},
		"%zz":                             {"query"},
	} {
		b.Names(t, "/subscriptions/metrics?"+query, want)
	}
	for query, want := range map[string]struct {
		first, last string
		months      int
	}{
		"":                         {"2024-12", "2025-11", 12},
		"?from=2022-12":            {"2022-12", "2025-11", 36},
		"?to=2024-02":              {"2023-03", "2024-02", 12},
		"?from=2025-10&to=2025-10": {"2025-10", "2025-10", 1},
		"?from=0001-01&to=0003-12": {"0001-01", "0003-12", 36},
	} {
		got := metricsOf(t, b, 3, query)
		assert.Require(t, len(got) == want.months, "%q: %d months, want %d", query, len(got), want.months)
		first, last := got[0], got[len(got)-1]
		assert.That(t, first.Month == want.first && last.Month == want.last && last.Complete == (want.last != "2025-11"), "%q: from %+v to %+v", query, first, last)
		assert.Equal(t, first, monthly{Month: want.first, Currency: "JPY", Complete: first.Complete}, "%q: nothing is recorded", query)
	}
}

// The history that triggers record, and that of the source in memory, leads to the revenue of the rows.
func TestMetrics_AgreeWithTheSummary(t *testing.T) {
	t.Parallel()
	wantAgreement := func(source suite.Source, after string) {
		b := suite.NewBundle(source) // with no kept results
		for store := range int64(3) {
			got := []revenue{}
			for _, f := range metricsOf(t, b, store+1, "?from=2025-11") {
				if n, _ := f.Figures["subscriptions"].Int64(); n > 0 {
					got = append(got, revenue{f.Currency, f.Figures["mrr"], n})
				}
			}
			assert.Equal(t, got, summaryOf(t, b, store+1).MRR, "%T: store %d after %s", source, store+1, after)
		}
	}
	d := suite.SampleData()
	pool := suite.Filled(t, d)
	for _, change := range []string{
		"SELECT",
		"UPDATE subscriptions SET status = 'active', next_retry_at = NULL, grace_ends_at = NULL WHERE status IN ('trialing', 'past_due') AND id % 3 = 0",
		"UPDATE subscriptions SET price_amount = price_amount * 3 + id, duration = CASE WHEN id % 2 = 0 THEN 'quarterly' ELSE 'biennial' END",
		"UPDATE subscriptions SET current_period_end = current_period_end + interval '1 month'",
		"UPDATE subscriptions SET currency = 'KWD' WHERE id % 5 = 0",
		"DELETE FROM subscriptions WHERE id % 7 = 0",
	} {
		suite.Exec(t, pool, change)
		wantAgreement(suite.Patient(pool), change)
	}
	memory := suite.NewMemory(d.Customers, d.All)
	wantAgreement(memory, "nothing")
	for i, s := range d.All {
		if s.Price += 123; i%3 == 0 {
			s.Status = subscriptions.Active
		}
		memory.Put(s)
	}
	memory.Delete(1, d.All[0].ID, time.Now())
	wantAgreement(memory, "changes")
}
