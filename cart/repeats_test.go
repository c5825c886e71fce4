package cart

import (
	"fmt"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestMemory_KnowsAKeyForADay(t *testing.T) {
	t.Parallel()
	m := Memory{}.remember(Attempt{Key: "k", Fingerprint: "f"}, "", noon)
	for age, want := range map[time.Duration]bool{0: true, KeyLife - time.Millisecond: true, KeyLife: false} {
		if use, ok := m.appliedUnder("k", noon.Add(age)); ok != want || ok && use.Fingerprint != "f" {
			t.Errorf("after %v: %+v, %v", age, use, ok)
		}
	}
}

func TestMemory_TellsARetryFromASecondClick(t *testing.T) {
	t.Parallel()
	m := Memory{}.remember(Attempt{Stamp: "s"}, "", noon)
	for age, want := range map[time.Duration]bool{
		999 * time.Millisecond: false, time.Second: true, 5 * time.Minute: true, 5*time.Minute + time.Millisecond: false,
	} {
		if got := m.Stamps["s"].IsRetry(noon.Add(age)); got != want {
			t.Errorf("after %v: %v", age, got)
		}
	}
}

// A retry of the first click comes a second after it, which may be less than a second
// after the other.
func TestMemory_OfTwoClicksTheFirstCounts(t *testing.T) {
	t.Parallel()
	m := Memory{}.remember(Attempt{Stamp: "s"}, "", noon)
	m = m.remember(Attempt{Stamp: "s"}, "", noon.Add(900*time.Millisecond))
	if !m.Stamps["s"].IsRetry(noon.Add(time.Second)) {
		t.Error("the retry would count")
	}
	m = m.remember(Attempt{Stamp: "s"}, "", noon.Add(time.Hour))
	if m.Stamps["s"].IsRetry(noon.Add(time.Hour + time.Millisecond)) {
		t.Error("an hour later, the first still counts")
	}
}

func TestMemory_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	var m Memory
	at := noon
	for i := range KeysKept + 1 {
		at = at.Add(time.Second)
		m = m.remember(Attempt{Key: fmt.Sprint(i)}, "", at)
		m = m.remember(Attempt{Stamp: fmt.Sprint(i)}, "", at)
	}
	_, first := m.Keys["0"]
	_, second := m.Keys["1"]
	if len(m.Keys) != KeysKept || first || !second {
		t.Errorf("%d keys, the first %v, the second %v", len(m.Keys), first, second)
	}
	if _, oldest := m.Stamps[fmt.Sprint(KeysKept+1-StampsKept)]; len(m.Stamps) != StampsKept || !oldest {
		t.Errorf("%d stamps", len(m.Stamps))
	}
}

func TestMemory_JoinsByTheCustomersClock(t *testing.T) {
	t.Parallel()
	own := Memory{Keys: map[string]KeyUse{"k": {noon, "own", ""}}}
	guest := Memory{
		Keys:   map[string]KeyUse{"k": {noon.Add(-time.Minute), "guest's", ""}, "late": {noon.Add(time.Minute), "f", ""}},
		Stamps: map[string]StampUse{"s": {At: noon.Add(-2 * time.Minute)}, "old": {At: noon.Add(-7 * time.Minute)}},
	}
	got := own.Join(guest, time.Minute, noon)
	if got.Keys["k"].Fingerprint != "own" || !got.Keys["late"].At.Equal(noon) || !got.Stamps["s"].At.Equal(noon.Add(-time.Minute)) {
		t.Errorf("got %+v", got)
	}
	if _, ok := got.Stamps["old"]; ok {
		t.Error("a stamp that is too old came")
	}
	if got := own.Join(guest, 2*time.Minute, noon.Add(time.Second)); got.Keys["k"].Fingerprint != "guest's" {
		t.Errorf("the later use does not count: %+v", got.Keys)
	}
	if len(own.Keys) != 1 || len(guest.Keys) != 2 {
		t.Error("it changed what it was given")
	}
}
