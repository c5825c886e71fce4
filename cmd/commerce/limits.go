package main

import (
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"commerce/cart"
	"commerce/cmd/internal/server"
)

// maxDrainDelay leaves enough of the grace period for the last request.
const maxDrainDelay = 4 * time.Second

// maxReplicas is the highest REDIS_MIN_REPLICAS. It catches typing errors.
const maxReplicas = 100

// maxInFlight is the highest MAX_IN_FLIGHT. It catches typing errors.
const maxInFlight = 100_000

// minMaxLag and maxMaxLag bound REPLICA_MAX_LAG. Replicas are checked five times within the
// minimum, and the samples of the primary cover the maximum.
const (
	minMaxLag = time.Second
	maxMaxLag = 10 * time.Minute
)

// defaultLimits are the limits of a cart, unless they are set.
func defaultLimits() cart.Limits {
	return cart.Limits{Lines: 100, Quantity: 999, LineText: 4 << 10, CartText: 64 << 10}
}

// helpNumbers are the numbers that help texts and defaults of settings refer to as
// ${name}.
func helpNumbers() kong.Vars {
	vars := kong.Vars{
		"max_drain_delay": maxDrainDelay.String(), "min_max_lag": minMaxLag.String(), "max_max_lag": maxMaxLag.String(),
	}
	limits := defaultLimits()
	for name, n := range map[string]int64{
		"lines": limits.Lines, "max_lines": cart.MaxLines,
		"quantity": limits.Quantity, "max_quantity": cart.MaxQuantity,
		"line_text": limits.LineText, "cart_text": limits.CartText, "max_text": cart.MaxText,
		"max_replicas": maxReplicas, "max_in_flight": maxInFlight, "in_flight_per_cpu": server.InFlightPerCPU,
	} {
		vars[name] = strconv.FormatInt(n, 10)
	}
	return vars
}
