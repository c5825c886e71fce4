package sample

import "commerce/auth/store"

// ebooks is the tax class of electronic books, which many countries tax less.
const ebooks = "e-book"

// taxRates returns rates of 35 countries. They are an example, as of January 2026, and no advice.
func taxRates() store.TaxRates {
	const percent = 10_000
	rates := store.TaxRates{}
	for country, standard := range map[string]int64{
		"AT": 20 * percent, "BE": 21 * percent, "BG": 20 * percent, "CY": 19 * percent, "CZ": 21 * percent, "DE": 19 * percent,
		"DK": 25 * percent, "EE": 24 * percent, "ES": 21 * percent, "FI": 25.5 * percent, "FR": 20 * percent, "GR": 24 * percent,
		"HR": 25 * percent, "HU": 27 * percent, "IE": 23 * percent, "IT": 22 * percent, "LT": 21 * percent, "LU": 17 * percent,
		"LV": 21 * percent, "MT": 18 * percent, "NL": 21 * percent, "PL": 23 * percent, "PT": 23 * percent, "RO": 21 * percent,
		"SE": 25 * percent, "SI": 22 * percent, "SK": 23 * percent,
		"AE": 5 * percent, "BH": 10 * percent, "KW": 0, "OM": 5 * percent, "QA": 0, "SA": 15 * percent,
		"CH": 8.1 * percent, "GB": 20 * percent,
	} {
		rates[country] = map[string]int64{store.StandardTax: standard}
	}
	for country, reduced := range map[string]int64{
		"AT": 10 * percent, "BE": 6 * percent, "BG": 9 * percent, "CY": 3 * percent, "CZ": 0, "DE": 7 * percent, "EE": 9 * percent,
		"ES": 4 * percent, "FI": 13.5 * percent, "FR": 5.5 * percent, "GR": 6 * percent, "HR": 5 * percent, "IE": 0, "IT": 4 * percent,
		"LT": 5 * percent, "LU": 3 * percent, "LV": 5 * percent, "MT": 5 * percent, "NL": 9 * percent, "PL": 5 * percent,
		"PT": 6 * percent, "RO": 11 * percent, "SE": 6 * percent, "SI": 5 * percent, "SK": 5 * percent,
		"CH": 2.6 * percent, "GB": 0,
	} {
		rates[country][ebooks] = reduced
	}
	return rates
}
