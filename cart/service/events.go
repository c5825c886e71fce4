package service

import (
	"errors"
	"time"

	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/transfer"
)

// Events are called when something happens to a cart, for metrics. A nil function is not
// called. They must not block.
type Events struct {
	// Created is called when a change, and not a merge, has created a customer's or a guest's cart.
	Created func(customer bool)

	// Merged is called after each attempt at a merge.
	Merged func(outcome MergeOutcome, took time.Duration)

	// Replicated is called after each change that waited for replicas, with whether all of
	// them have it.
	Replicated func(confirmed bool)

	// Validated is called with the result of each validation.
	Validated func(*price.Validation)
}

// MergeOutcome is how an attempt at a merge ended.
type MergeOutcome string

const (
	MergeDone      MergeOutcome = "merged"
	MergeCut       MergeOutcome = "cut"       // merged, but some quantities were cut to what may be bought
	MergeFull      MergeOutcome = "full"      // the customer's cart has no room for the guest's lines
	MergePostponed MergeOutcome = "postponed" // to a later request, after a failure
	MergeNothing   MergeOutcome = "nothing"   // another request did it, or it added nothing
)

func (e Events) withDefaults() Events {
	if e.Created == nil {
		e.Created = func(bool) {}
	}
	if e.Merged == nil {
		e.Merged = func(MergeOutcome, time.Duration) {}
	}
	if e.Replicated == nil {
		e.Replicated = func(bool) {}
	}
	if e.Validated == nil {
		e.Validated = func(*price.Validation) {}
	}
	return e
}

func mergeOutcome(report *cart.MergeReport, err error) MergeOutcome {
	switch {
	case errors.Is(err, transfer.ErrNoRoom):
		return MergeFull
	case err != nil:
		return MergePostponed
	case report == nil || report.Lines == 0:
		return MergeNothing
	case len(report.Adjusted) > 0:
		return MergeCut
	}
	return MergeDone
}
