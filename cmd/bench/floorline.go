package main

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// floorLine is a line of a cart as a program without a catalog stores it: with everything
// that a storefront shows of it, about 490 bytes as JSON.
type floorLine struct {
	ID             string     `json:"id"`
	ProductID      int64      `json:"product_id"`
	Name           string     `json:"name"`
	Slug           string     `json:"slug"`
	Type           string     `json:"type"`
	Description    string     `json:"description"`
	Image          floorImage `json:"image"`
	Quantity       int64      `json:"quantity"`
	UnitPrice      float64    `json:"unit_price"`
	TotalPrice     float64    `json:"total_price"`
	FormattedPrice string     `json:"formatted_price"`
	FormattedTotal string     `json:"formatted_total"`
	Currency       string     `json:"currency"`
	Status         int        `json:"status"`
	Unlimited      bool       `json:"unlimited_stock"`
	AddedAt        string     `json:"added_at"`
}

type floorImage struct {
	URL string `json:"url"`
	Alt string `json:"alt"`
}

// newFloorLine returns a line as JSON.
func newFloorLine(product, quantity int64) ([]byte, error) {
	id := strconv.FormatInt(product, 10)
	return json.Marshal(floorLine{
		ID: id, ProductID: product, Name: "Game credit " + id, Slug: "game-credit-" + id, Type: "digital",
		Description: "Credit for the game, delivered by e-mail within a minute after the payment is made",
		Image:       floorImage{URL: "https://cdn.example.com/products/game-credit-" + id + ".webp", Alt: "Game credit " + id},
		Quantity:    quantity, UnitPrice: 10.01, TotalPrice: 10.01 * float64(quantity),
		FormattedPrice: "SAR 10.01", FormattedTotal: fmt.Sprintf("SAR %.2f", 10.01*float64(quantity)),
		Currency: "SAR", Status: 1, Unlimited: true, AddedAt: "2026-01-01T00:00:00Z",
	})
}

// floorCart is the lines of a floor's cart.
type floorCart []floorLine

// add decodes a stored line.
func (c *floorCart) add(stored string) error {
	var line floorLine
	if err := json.Unmarshal([]byte(stored), &line); err != nil {
		return err
	}
	*c = append(*c, line)
	return nil
}
