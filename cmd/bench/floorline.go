package main

import (
	"encoding/json"
	"strconv"
)

// floorLine is a line of a floor's cart, about 150 bytes of JSON.
type floorLine struct {
	ID        string `json:"id"`
	ProductID int64  `json:"product_id"`
	Name      string `json:"name"`
	Slug      string `json:"slug"`
	Quantity  int64  `json:"quantity"`
	UnitPrice int64  `json:"unit_price"`
	Currency  string `json:"currency"`
	AddedAt   string `json:"added_at"`
}

func newFloorLine(product, quantity int64) ([]byte, error) {
	return json.Marshal(floorLine{
		ID: strconv.FormatInt(product, 10), ProductID: product, Name: "Game credit", Slug: "game-credit",
		Quantity: quantity, UnitPrice: 1000, Currency: "SAR", AddedAt: "2026-01-01T00:00:00Z",
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
