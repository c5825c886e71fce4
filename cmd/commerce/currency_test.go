package main

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"sync"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// liveLog is a log that can be read while it is written.
type liveLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *liveLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *liveLog) has(line *regexp.Regexp) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return line.Match(l.b.Bytes())
}

// wait waits until a line of the log matches.
func (l *liveLog) wait(t *testing.T, line string) {
	t.Helper()
	wanted := regexp.MustCompile(line)
	for deadline := time.Now().Add(20 * time.Second); !l.has(wanted); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no line of the log matches %s", line)
		}
	}
}

func TestCatalog_ReportsStoresWithAnUnknownCurrencyImmediately(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	db := writer(t, url)
	change(t, db, `INSERT INTO stores (id, name, currency) VALUES (1, 'Shop', 'SAR'), (7, 'Shop', 'XYZ'), (8, 'Shop', 'XYZ')`)
	log := &liveLog{}
	catalog := openCatalog(db, nil, slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(catalog.listen(context.WithoutCancel(t.Context()), func(context.Context) {}))
	log.wait(t, `level=ERROR .*currency=XYZ stores=2 first_store=7`)

	change(t, db, `INSERT INTO stores (id, name, currency) VALUES (9, 'Shop', 'QQQ')`) // while it runs
	log.wait(t, `level=ERROR .*currency=QQQ stores=1 first_store=9`)
	if log.has(regexp.MustCompile(`currency=SAR`)) {
		t.Error("a known currency is reported")
	}
}
