package store

// StandardTax is the class of goods that a country taxes at its standard rate.
const StandardTax = "standard"

// TaxRates has the rates of a store's goods by country and tax class, in parts per million.
type TaxRates map[string]map[string]int64

// Abroad reports whether a buyer's country, "" if it is not known, decides the tax instead of the store.
func (s *Store) Abroad(country string) bool {
	return s.Country != "" && country != "" && country != s.Country
}

// TaxAbroad returns the rate of a class in another country: its own, or else the standard one there, or else 0.
func (s *Store) TaxAbroad(country, class string) int64 {
	rates := s.TaxRates[country]
	if rate, ok := rates[class]; ok {
		return rate
	}
	return rates[StandardTax]
}

// StandardRate returns the standard rate for a buyer in a country, "" if that is not known.
func (s *Store) StandardRate(country string) int64 {
	if s.Abroad(country) {
		return s.TaxAbroad(country, StandardTax)
	}
	return s.TaxRate
}
