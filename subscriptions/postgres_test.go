package subscriptions_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/formats"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/suite"
)

// A client that follows the links forward and then back sees every row that existed when it
// began, once in each direction and in order, although rows are inserted meanwhile.
func TestList_WalkIsSteadyWhileRowsAreInserted(t *testing.T) {
	t.Parallel()
	d := suite.SampleData()
	for sort, want := range map[string][]int64{"": idsOf(d.All, 1, newestFirst, nil), "&sort=periodEnd": idsOf(d.All, 1, byPeriodEnd, nil)} {
		t.Run("per_page=5"+sort, func(t *testing.T) {
			t.Parallel()
			wantSteady(t, d, sort, want)
		})
	}
}

func wantSteady(t *testing.T, d suite.Data, sort string, want []int64) {
	t.Helper()
	pool := suite.Filled(t, d)
	b := suite.NewBundle(suite.Patient(pool))
	stop, inserted, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { done <- insertUntil(t.Context(), pool, d.All[0], stop, inserted) }()

	follow := func(page suite.Answer, link func(suite.Answer) *string) (pages [][]int64, last suite.Answer) {
		t.Helper()
		for {
			there := slices.DeleteFunc(page.IDs(), func(id int64) bool { return id >= firstInserted })
			pages = append(pages, there)
			if link(page) == nil {
				return pages, page
			}
			select {
			case <-inserted: // at least one row between any two pages
			case err := <-done:
				t.Fatal(err)
			}
			page = b.List(t, *link(page), 1)
		}
	}
	first := b.List(t, "http://shop.test/subscriptions?per_page=5"+sort, 1)
	forth, last := follow(first, func(a suite.Answer) *string { return a.NextPageURL })
	assert.Equal(t, slices.Concat(forth...), want, "forward (-existed at the beginning +seen)")
	newest := b.List(t, "http://shop.test/subscriptions?per_page=1", 1).IDs()[0]
	assert.That(t, newest >= firstInserted+8, "the newest is %d: too few rows were inserted meanwhile", newest)
	back, top := follow(last, func(a suite.Answer) *string { return a.PrevPageURL })
	slices.Reverse(back)
	assert.Equal(t, slices.Concat(back...), want, "back (-existed at the beginning +seen)")
	ids := top.IDs()
	assert.That(t, sort != "" || top.CurrentPage == 1 && len(ids) > 0 && ids[0] >= newest,
		"the way back ends on page %d with %v, want page 1 and what came after %d", top.CurrentPage, ids, newest)
	close(stop)
	assert.NoError(t, <-done)
}

// A link whose page was deleted leads to an empty page, which links to the remaining rows.
func TestList_LinksSurviveDeletedPages(t *testing.T) {
	t.Parallel()
	for _, sort := range []string{"", "&sort=periodEnd"} {
		pool := suite.Filled(t, suite.SampleData())
		b := suite.NewBundle(suite.Patient(pool))
		first := b.List(t, "http://shop.test/subscriptions?per_page=16"+sort, 1)
		middle := b.List(t, *first.NextPageURL, 1)
		suite.Exec(t, pool, "DELETE FROM subscriptions WHERE store_id = 1 AND NOT id = ANY($1)", middle.IDs())
		for name, gone := range map[string]suite.Answer{
			"next": b.List(t, *middle.NextPageURL, 1), "previous": b.List(t, *middle.PrevPageURL, 1),
		} {
			link := gone.NextPageURL
			if name == "next" {
				link = gone.PrevPageURL
			}
			assert.Require(t, len(gone.Data) == 0 && link != nil, "%s page%s: %v, want an empty one with a link", name, sort, gone)
			assert.Equal(t, b.List(t, *link, 1).IDs(), middle.IDs(), "from the %s page%s (-left +seen)", name, sort)
		}
	}
}

const firstInserted = 100_000

// insertUntil inserts rows one by one, each after the previous one was received.
func insertUntil(ctx context.Context, pool *pgxpool.Pool, like subscriptions.Subscription, stop, inserted chan struct{}) error {
	like.ID, like.Card = firstInserted, nil
	for ; ; like.ID++ {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			return sample.WriteSubscriptions(ctx, tx, sample.Customers()[:1], []subscriptions.Subscription{like})
		})
		if err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case inserted <- struct{}{}:
		}
	}
}

// The schema makes impossible states impossible to write.
func TestSchema_RefusesImpossibleStates(t *testing.T) {
	t.Parallel()
	d := suite.SixStates()
	for i := range d.All {
		d.All[i].Card = &subscriptions.Card{LastFour: "4242", Scheme: "visa"} // numbered as the subscription
	}
	d.Customers = append(d.Customers, subscriptions.Customer{StoreID: 1, ID: 1002, CallingCode: "971"})
	pool := suite.Filled(t, d)
	for _, change := range []string{
		"status = 'unpaid'", "status = 'paused'", "paused_at = now()", "paused_remaining_days = 3", "status = 'past_due'",
		"next_retry_at = now()", "grace_ends_at = now()", "status = 'trialing'", "status = 'canceled'", "duration = 'weekly'",
		"starts_at = ends_at + interval '1 second'", "current_period_end = current_period_start", "price_amount = -1",
		"currency = 'sar'", "currency = 'SARS'", "metadata = '[1]'", "metadata = 'null'", "scheduled_variant_id = variant_id",
		"scheduled_variant_id = 999", "variant_id = 999", "product_id = 999", "customer_id = 999",
		"customer_id = 1002", // who has another calling code
		"calling_code = '971'",
		"customer_id = 1002, calling_code = '971'", // who does not own the card
		"saved_card_id = 999", "order_id = 0", "store_id = 2", "external_customer_id = ''",
		"external_customer_id = repeat('x', 256)", "cancellation_reason = repeat('ع', 201)",
		"metadata = jsonb_build_object('x', repeat('x', 16 * 1024 - 8))", // {"x": "…"} of 16,385 bytes
		"starts_at = '-infinity'", "ends_at = 'infinity'", "ends_at = '10000-01-01 00:00:00+00'",
		"current_period_start = '0001-12-31 00:00:00+00 BC'", "current_period_end = 'infinity'", "trial_ends_at = 'infinity'",
		"canceled_at = '-infinity'", "created_at = '-infinity'", "updated_at = '294276-01-01 00:00:00+00'",
		"status = 'paused', paused_remaining_days = 1, paused_at = 'infinity'",
		"status = 'past_due', next_retry_at = 'infinity'",
		"status = 'past_due', next_retry_at = now(), grace_ends_at = 'infinity'",
	} {
		_, err := pool.Exec(t.Context(), "UPDATE subscriptions SET "+change+" WHERE store_id = 1 AND id = 2")
		var refused *pgconn.PgError
		assert.That(t, errors.As(err, &refused) && strings.HasPrefix(refused.Code, "23"),
			"%s: %v, want a violated constraint", change, err)
	}
}

func TestSchema_AcceptsTheMaximums(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.SixStates())
	b := suite.NewBundle(suite.Patient(pool))
	suite.Exec(t, pool, `UPDATE subscriptions SET starts_at = '0001-01-01 00:00:00+00', ends_at = '9999-12-31 23:59:59.999999+00',
		external_customer_id = repeat('ع', 255), cancellation_reason = repeat('ع', 200), metadata = jsonb_build_object('x', repeat('x', 16 * 1024 - 9)) WHERE id = 2`)
	s := b.List(t, "/subscriptions?per_page=1&page=5", 1).Data[0]
	assert.That(t, s["id"] == 2.0 && s["starts_at"] == "0001-01-01 00:00:00" && s["ends_at"] == "9999-12-31 23:59:59" &&
		s["external_customer_id"] == strings.Repeat("ع", 255) &&
		len(s["metadata"].(map[string]any)["x"].(string)) == 16*1024-9, "got %.200v", s)
}

const dropBounds = `DO $$
	DECLARE name text;
	BEGIN
		FOR name IN SELECT conname FROM pg_constraint
		WHERE conrelid = 'subscriptions'::regclass AND conname ~ '_(is_a_date|is_short|has_a_length)$' LOOP
			EXECUTE format('ALTER TABLE subscriptions DROP CONSTRAINT %I', name);
		END LOOP;
	END $$`

// The stored time is the key of the order, the links and the filters, also where another one is shown.
func TestList_ByPeriodEndHasEveryRowOnceWhateverIsStored(t *testing.T) {
	t.Parallel()
	d := suite.SampleData()
	pool := suite.Filled(t, d)
	suite.Exec(t, pool, dropBounds)
	suite.Exec(t, pool, `UPDATE subscriptions SET current_period_end = (ARRAY['-infinity', '4714-11-24 00:00:00+00 BC', '0044-03-15 00:00:00+00 BC',
		'0001-01-01 00:00:00+00', '0001-01-01 00:00:00.000001+00', '2025-11-20 00:00:00.000001+00', '2025-11-20 00:00:00.000002+00',
		'9999-12-31 23:59:59.999999+00', '10000-01-01 00:00:00+00', '294246-12-31 00:00:00+00', '294276-12-31 23:59:59.999999+00', 'infinity'
	])[1 + id % 12]::timestamptz WHERE store_id = 1`)
	stored := suite.Patient(pool)
	all := assert.Must(stored.List(t.Context(), 1, subscriptions.Query{Limit: 100}))(t)
	for _, source := range []suite.Source{stored, suite.NewMemory(d.Customers, all)} {
		b := suite.NewBundle(source)
		for days, condition := range map[string]string{
			"": "true", "&periodEndTo=9999-12-31": "true", "&periodEndFrom=0001-01-01": "true",
			"&periodEndFrom=9999-12-31": "current_period_end >= '9999-12-31'", "&periodEndTo=0001-01-01": "current_period_end < '0001-01-02'",
			"&periodEndFrom=2025-11-20&periodEndTo=9999-12-31": "current_period_end >= '2025-11-20'",
			"&status=active,paused&periodEndTo=2025-11-20":     "status IN ('active', 'paused') AND current_period_end < '2025-11-21'",
		} {
			rows := assert.Must(pool.Query(t.Context(), "SELECT id FROM subscriptions WHERE store_id = 1 AND "+condition+" ORDER BY current_period_end, id"))(t)
			want := assert.Must(pgx.CollectRows(rows, pgx.RowTo[int64]))(t)
			wantWalk(t, b, "http://shop.test/subscriptions?sort=periodEnd&per_page=5"+days, want)
		}
	}
}

// Rows from before the schema had limits are shown with the nearest valid values. They do
// not make a page fail, and the log names one of them.
func TestList_ShowsRowsFromBeforeTheBounds(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.SixStates())
	var log bytes.Buffer
	source := suite.Parts{Config: suite.PatientConfig(pool), Log: slog.New(slog.NewTextHandler(&log, nil))}.Source()
	b := suite.NewBundle(source)
	for _, change := range []string{
		dropBounds,
		"UPDATE subscriptions SET ends_at = 'infinity', current_period_end = '10010-03-04 00:00:00+00' WHERE id = 2",
		"UPDATE subscriptions SET grace_ends_at = 'infinity' WHERE id = 3",
		"UPDATE subscriptions SET starts_at = '-infinity', current_period_start = '0044-03-15 00:00:00+00 BC', created_at = '-infinity' WHERE id = 4",
		"UPDATE subscriptions SET metadata = jsonb_build_object('x', repeat('x', 1 << 20)), external_customer_id = repeat('x', 256) WHERE id = 5",
		// More than an index can hold, even compressed.
		"UPDATE subscriptions SET external_customer_id = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) i) WHERE id = 6",
	} {
		suite.Exec(t, pool, change)
	}
	listed := map[float64]map[string]any{}
	for _, s := range b.List(t, "/subscriptions", 1).Data {
		listed[s["id"].(float64)] = s
	}
	for _, tt := range []struct {
		id     float64
		member string
		want   any
	}{
		{2, "ends_at", "9999-12-31 23:59:59"},
		{2, "end_date", "9999-12-31 23:59:59"},
		{2, "current_period_end", "9999-12-31 23:59:59"},
		{2, "is_active", true},
		{2, "days_remaining", 2912484.0},
		{3, "is_active", true},
		{4, "starts_at", "0001-01-01 00:00:00"},
		{4, "current_period_start", "0001-01-01 00:00:00"},
		{4, "created_at", "0001-01-01T00:00:00.000001Z"},
		{5, "metadata", nil},
		{5, "external_customer_id", nil},
		{6, "status", "expired"},
		{6, "external_customer_id", nil},
	} {
		assert.Equal(t, listed[tt.id][tt.member], tt.want, "%s of %v", tt.member, tt.id)
	}
	for id := range listed {
		assert.Equal(t, b.Do(fmt.Sprintf("/subscriptions/%v", id), 1, "en").Code, http.StatusOK, "%v alone", id)
	}
	ephemeral.Settle(t, pool) // a neighbor's open transaction holds back changes
	for path, format := range map[string]formats.Format{
		"/subscriptions/2": "", "/subscriptions/4": "", "/subscriptions/2/history": "", "/subscriptions/4/history": "",
		"/subscriptions/changes": "", "/subscriptions/changes?": formats.CSV,
	} {
		text := b.Accepting(format, path, 1, "en").Body.String()
		shown := regexp.MustCompile(`\b(9999-12-31|0001-01-01)`).MatchString(text)
		assert.That(t, shown && !regexp.MustCompile(`\d{5}-\d\d-\d\d|-\d{4}-\d\d-\d\d|\b00(00|44)-`).MatchString(text), "%s: a year has other than four digits: %s", path, text)
	}
	assert.That(t, regexp.MustCompile(`\A.* level=WARN .*store=1 subscription=.*\n\z`).MatchString(log.String()),
		"the log says %q, want one warning that names a row", log.String())
}

// One instance has read a new key while another still signs with the old one. Each accepts
// the other's links, and older ones.
func TestList_LinksSurviveANewKey(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.SampleData())
	instance := func() suite.Bundle { return suite.NewBundle(suite.Patient(pool)) }
	one, two := instance(), instance()
	const start = "http://shop.test/subscriptions?per_page=5"
	links := []string{*one.List(t, start, 1).NextPageURL, *two.List(t, start, 1).NextPageURL}
	suite.Exec(t, pool, "UPDATE page_link_key SET key = uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())")
	three := instance() // started after the change
	signed := *three.List(t, start, 1).NextPageURL
	links = append(links, *one.List(t, start, 1).NextPageURL, signed)
	for _, b := range []suite.Bundle{three, one, two} {
		for _, link := range links {
			page := b.List(t, link, 1)
			assert.Equal(t, page.CurrentPage, 2, "%s leads to page", link)
			for _, other := range []suite.Bundle{one, two, three} {
				other.List(t, *page.PrevPageURL, 1)
			}
		}
	}
	assert.Equal(t, *one.List(t, start, 1).NextPageURL, signed,
		"an instance that has read the new key still signs with the old one")
	suite.Exec(t, pool, "UPDATE page_link_key SET previous = NULL")
	instance().Refused(t, links[0], 1)
	instance().List(t, signed, 1)
}

// A store may read only one deep page at a time. A second one is refused immediately and
// uses no connection. Other pages, and deep pages of other stores, are not affected.
func TestList_LimitsConcurrentDeepPages(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.SampleData())
	b := suite.NewBundle(suite.NewPostgres(postgres.Config{Pool: pool, Budget: ephemeral.Patience(30 * time.Second), Wait: ephemeral.Patience(10 * time.Second)}))
	const farDown = "http://shop.test/subscriptions?page=10000&per_page=100"
	lock := assert.Must(pool.Begin(t.Context()))(t)
	defer lock.Rollback(context.Background())
	b.List(t, "/subscriptions", 1) // reads the key
	suite.Exec(t, lock, "LOCK TABLE subscriptions")
	var readers sync.WaitGroup
	waiting := func(want int) {
		t.Helper()
		ephemeral.Eventually(t, fmt.Sprintf("%d statements wait", want), func() bool {
			var n int
			suite.Exec(t, lock, "SELECT pg_stat_clear_snapshot()")
			assert.NoError(t, lock.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n))
			return n == want
		})
	}
	read := func(url string, store int64) { readers.Go(func() { b.List(t, url, store) }) }
	read(farDown, 1)
	waiting(1)
	refused := b.Refused(t, farDown, 1)
	assert.That(t, refused.Code == "unavailable" && strings.Contains(refused.Message, "next_page_url"), "%+v", refused)
	read(farDown, 2)
	waiting(2)
	b.WantRefused(t, farDown, 3, "unavailable")
	read("http://shop.test/subscriptions?page=201&per_page=100", 1) // skips 20,000 rows
	waiting(3)
	assert.NoError(t, lock.Rollback(t.Context()))
	readers.Wait()
	b.List(t, farDown, 1)
	b.List(t, farDown, 3)
}

// A store with slow statements uses only its own share of the connections.
func TestList_OneStoreLeavesConnectionsToOthers(t *testing.T) {
	t.Parallel()
	url := suite.Filled(t, suite.SampleData()).Config().ConnString()
	pool := ephemeral.OpenPool(t, url, connect.PostgresConfig{MaxConns: 8, StatementTimeout: -1})
	source := suite.NewPostgres(postgres.Config{Pool: pool, Budget: ephemeral.Patience(30 * time.Second), Wait: ephemeral.Patience(2 * time.Second)})
	lock := assert.Must(ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true, MaxConns: 1}).Begin(t.Context()))(t)
	defer lock.Rollback(context.Background())
	suite.Exec(t, lock, "LOCK TABLE subscriptions")
	var lists sync.WaitGroup
	var late, answered atomic.Int64
	list := func(store int64) {
		lists.Go(func() {
			if _, err := source.List(t.Context(), store, subscriptions.Query{Limit: 16}); err != nil {
				late.Add(1)
			} else {
				answered.Add(1)
			}
		})
	}
	for range 20 {
		list(1)
	}
	ephemeral.Eventually(t, "18 of 20 have waited in vain for the store's own connections", func() bool { return late.Load() >= 18 })
	list(2)
	ephemeral.Eventually(t, "another store has a connection", func() bool { return pool.Stat().AcquiredConns() >= 3 })
	assert.NoError(t, lock.Rollback(t.Context()))
	lists.Wait()
	assert.Equal(t, answered.Load(), 3, "answered, two of the slow store and one of the other")
}

// The database's locale, which folds case differently, does not affect which customers are found.
func TestList_FindsCustomersOnEveryLocale(t *testing.T) {
	t.Parallel()
	d := suite.SampleData()
	d.Customers = append(d.Customers,
		subscriptions.Customer{StoreID: 1, ID: 1101, Email: "IRIS.QUIZ@EXAMPLE.COM", Phone: "966501112222", CallingCode: "966"},
		subscriptions.Customer{StoreID: 1, ID: 1102, Email: "élodie@example.com", Phone: "٠٥٠١١١٣٣٣٣", CallingCode: "966"},
		subscriptions.Customer{StoreID: 1, ID: 1103, Email: "İPEK@example.com", Phone: "\u202a+966 50 111 4444\u202c", CallingCode: "966"},
		subscriptions.Customer{StoreID: 1, ID: 1104, Email: "ΟΔΟΣ@example.com", Phone: "۹۷۱۰۵۰۱۱۱۵۵۵۵", CallingCode: "971"},
	)
	for i := range 4 {
		s := d.All[0]
		s.ID, s.CustomerID, s.Card = int64(7001+i), int64(1101+i), nil
		d.All = append(d.All, s)
	}
	test := func(t *testing.T, b suite.Bundle) {
		for _, tt := range []struct {
			parameter string
			want      []int64
			values    []string
		}{
			{"customerEmail", []int64{7001}, []string{"iris.quiz@example.com", "Iris.Quiz@Example.Com"}},
			{"customerEmail", []int64{}, []string{"ırıs.quız@example.com", "ipek@example.com"}},
			{"customerEmail", []int64{7002}, []string{"ÉLODIE@EXAMPLE.COM"}},
			{"customerEmail", []int64{7003}, []string{"İpek@example.com"}},
			{"customerEmail", []int64{7004}, []string{"οδος@example.com"}},
			{"customerEmail", []int64{5003, 5002, 5001}, []string{"SARA@EXAMPLE.COM"}},
			{"customerPhone", []int64{7001}, []string{"0501112222", "501112222", "+966501112222", "+966 (0) 50 111 2222", "٠٥٠١١١٢٢٢٢"}},
			{"customerPhone", []int64{7002}, []string{"0501113333", "966501113333"}},
			{"customerPhone", []int64{7003}, []string{"\u202d966501114444\u202c", "0501114444"}},
			{"customerPhone", []int64{7004}, []string{"0501115555", "00971501115555"}},
			{"customerPhone", []int64{}, []string{"966501115555"}},
		} {
			for _, value := range tt.values {
				got := b.List(t, "http://shop.test/subscriptions?"+tt.parameter+"="+url.QueryEscape(value), 1).IDs()
				assert.Equal(t, got, tt.want, "%s=%+q", tt.parameter, value)
			}
		}
	}
	t.Run("usual", func(t *testing.T) {
		t.Parallel()
		suite.OnEach(t, d, test)
	})
	for name, locale := range map[string]string{
		"turkish": "LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR' LOCALE 'C'", "c": "LOCALE_PROVIDER libc LOCALE 'C'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite.SkipBehindPooler(t) // for the migrations
			pool := localized(t, name, locale)
			suite.Fill(t, pool, d)
			test(t, suite.NewBundle(suite.Patient(pool)))
		})
	}
}

// localized returns a pool for an empty database with a locale.
func localized(t *testing.T, name, locale string) *pgxpool.Pool {
	t.Helper()
	config := connect.PostgresConfig{Writable: true, MaxConns: 4, StatementTimeout: -1}
	admin := ephemeral.OpenPool(t, ephemeral.Postgres(t), config)
	database := "test_" + name + "_" + strings.ToLower(rand.Text())
	suite.Exec(t, admin, "CREATE DATABASE "+database+" TEMPLATE template0 ENCODING 'UTF8' "+locale)
	t.Cleanup(func() {
		_, err := admin.Exec(context.Background(), "DROP DATABASE "+database+" WITH (FORCE)")
		assert.Succeeds(t, err, "drop")
	})
	u := assert.Must(url.Parse(admin.Config().ConnString()))(t)
	u.Path = database
	assert.NoError(t, ephemeral.Migrate(t.Context(), u.String()))
	return ephemeral.OpenPool(t, u.String(), config)
}

func TestSchema_CustomersChangesReachTheirSubscriptions(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.SixStates())
	b := suite.NewBundle(suite.Patient(pool))
	suite.Exec(t, pool, "UPDATE customers SET calling_code = '971' WHERE store_id = 1 AND id = 1001")
	assert.Equal(t, len(b.List(t, "/subscriptions?customerCountryCode=971", 1).Data), 6, "found by the new calling code")
	suite.Exec(t, pool, "DELETE FROM saved_cards")
	for _, s := range b.List(t, "/subscriptions", 1).Data {
		assert.That(t, s["auto_renew"] == false && s["payment_method"] == nil, "%v renews with a deleted card", s["id"])
	}
}

// The indexed column and the rule in Go give the same result for any number.
func TestSchema_NationalPhoneIsNationalPhone(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.Data{})
	random := mathrand.New(mathrand.NewPCG(1, 2))
	var phones, codes []string
	for range 3000 {
		const of = "000099966+() -.x٣٦۹\u202a1"
		phone := "5"
		for range random.IntN(16) {
			runes := []rune(of)
			phone += string(runes[random.IntN(len(runes))])
		}
		phones = append(phones, phone[random.IntN(2):]+"7")
		codes = append(codes, []string{"", "966", "9", "1", "99"}[random.IntN(5)])
	}
	type reading struct{ National, Uncoded string }
	rows, _ := pool.Query(t.Context(), `
		WITH given AS (SELECT * FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS given (phone, code, id)),
		made AS (INSERT INTO customers (store_id, id, phone, calling_code) SELECT 1, id, phone, code FROM given
			RETURNING id, national_phone, coalesce(uncoded_phone, '') AS uncoded)
		SELECT national_phone, uncoded FROM made ORDER BY id`, phones, codes)
	readings, err := pgx.CollectRows(rows, pgx.RowToStructByPos[reading])
	assert.Require(t, err == nil && len(readings) == len(phones), "%d rows, %v", len(readings), err)
	for i, phone := range phones {
		var want reading
		want.National, want.Uncoded = subscriptions.NationalPhone(phone, codes[i])
		assert.That(t, readings[i] == want, "%+q of %q: %v in Postgres, %v in Go", phone, codes[i], readings[i], want)
	}
}

// If Postgres is unresponsive or down, or the pool is exhausted, callers get unavailable
// within a second, and for a summary within two.
func TestPostgres_AnOutageIsUnavailableInTime(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartPostgres(t)
	assert.NoError(t, ephemeral.Migrate(t.Context(), server.URL))
	pool := ephemeral.OpenPool(t, server.URL, connect.PostgresConfig{MaxConns: 2})
	instance := func() suite.Bundle { // without a kept summary
		return suite.NewBundle(suite.Parts{Config: postgres.Config{Pool: pool}, Base: t.Context()}.Source())
	}
	lists := instance()
	served := func() { // the first call may fail on a busy machine
		t.Helper()
		ephemeral.Eventually(t, "lists are served", func() bool { return lists.Do("/subscriptions", 1, "en").Code == http.StatusOK })
		b := instance()
		ephemeral.Eventually(t, "summaries are served", func() bool { return b.Do("/subscriptions/summary", 1, "en").Code == http.StatusOK })
	}
	// The fastest of a few calls counts: a machine may be busy for a moment, but not each time.
	unavailable := func(when, url string, within time.Duration) {
		t.Helper()
		within = ephemeral.Patience(within)
		quickest := time.Hour
		for try := 0; try < 8 && quickest > within; try++ {
			b := lists
			if url == "/subscriptions/summary" || url == "/subscriptions/metrics" {
				b = instance()
			}
			began := time.Now()
			b.WantRefused(t, url, 1, "unavailable")
			quickest = min(quickest, time.Since(began))
		}
		assert.That(t, quickest <= within, "%s, GET %s: unavailable after %v at best, want %v", when, url, quickest, within)
	}
	all := func(when string) {
		t.Helper()
		unavailable(when, "/subscriptions", 1300*time.Millisecond)
		unavailable(when, "/subscriptions/1", 1300*time.Millisecond)
		unavailable(when, "/subscriptions/summary", 2300*time.Millisecond)
		unavailable(when, "/subscriptions/metrics", 2300*time.Millisecond)
	}
	served()
	var held []*pgxpool.Conn
	for range 2 {
		held = append(held, assert.Must(pool.Acquire(t.Context()))(t))
	}
	unavailable("no connection to spare", "/subscriptions", 600*time.Millisecond)
	unavailable("no connection to spare", "/subscriptions/1", 600*time.Millisecond)
	for _, conn := range held {
		conn.Release()
	}
	served()

	server.Freeze()
	all("frozen")
	server.Thaw()
	served()
	server.Kill()
	all("gone")
	server.Restart()
	served()
}

// A statement that exceeds the server's timeout is unavailable; an invalid statement is a
// defect, which a retry does not fix.
func TestPostgres_TellsATimeoutFromADefect(t *testing.T) {
	t.Parallel()
	suite.SkipBehindPooler(t)
	pool := suite.Filled(t, suite.SixStates())
	lock := assert.Must(pool.Acquire(t.Context()))(t)
	defer lock.Release()
	limited := ephemeral.OpenPool(t, pool.Config().ConnString(), connect.PostgresConfig{})
	budget := ephemeral.Patience(30 * time.Second) // much longer than the server's timeout
	b := suite.NewBundle(suite.NewPostgres(postgres.Config{Pool: limited, Budget: budget, Wait: budget}))
	b.List(t, "/subscriptions", 1)

	suite.Exec(t, lock, "BEGIN; LOCK TABLE subscriptions")
	began := time.Now()
	b.WantRefused(t, "/subscriptions", 1, "unavailable")
	assert.That(t, time.Since(began) <= budget/2, "locked: refused after %v", time.Since(began))
	suite.Exec(t, lock, "ALTER TABLE subscriptions RENAME TO elsewhere; COMMIT")
	b.WantRefused(t, "/subscriptions", 1, "internal")
}

// An ALTER TABLE changes the columns of statements that a connection has prepared, and DISCARD ALL
// forgets them.
func TestPostgres_PreparesStatementsAgain(t *testing.T) {
	t.Parallel()
	url := suite.Filled(t, suite.SixStates()).Config().ConnString()
	sole := ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true, MaxConns: 1})
	b := suite.NewBundle(suite.Patient(sole))
	for _, change := range []string{
		"SELECT", `ALTER TABLE products ALTER slug TYPE varchar(99);
			DROP TRIGGER _recorded_update ON subscriptions; ALTER TABLE subscriptions ALTER currency TYPE varchar(3)`, "DISCARD ALL",
	} {
		suite.Exec(t, sole, change)
		for _, path := range []string{"", "/3", "/changes"} {
			w := b.Do("/subscriptions"+path, 1, "en")
			assert.That(t, w.Code == http.StatusOK, "after %s: GET /subscriptions%s: %d %s", change, path, w.Code, w.Body)
		}
		totals, err := b.Source.Totals(t.Context(), 1)
		assert.That(t, err == nil && len(totals) == 6, "after %s: totals %v, %v", change, totals, err)
	}
}

// Revoked permissions can be restored, like a server: that is not a defect.
func TestPostgres_WithoutPermissionIsUnavailable(t *testing.T) {
	t.Parallel()
	suite.SkipBehindPooler(t)
	pool := suite.Filled(t, suite.SixStates())
	const role = "&role=pg_signal_backend" // which may not read any table
	powerless := ephemeral.OpenPool(t, pool.Config().ConnString()+role, connect.PostgresConfig{})
	b := suite.NewBundle(suite.Patient(powerless))
	b.WantRefused(t, "/subscriptions", 1, "unavailable", "read the keys of page links: ", "permission denied")
	b.WantRefused(t, "/subscriptions/1", 1, "unavailable", "get subscription 1 of store 1: ", "permission denied")
}
