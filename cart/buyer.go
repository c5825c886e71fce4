package cart

import (
	"strings"
	"time"
)

// Buyer is the country that a cart's buyer is in, which decides the tax on digital goods. The zero value: it is not known.
type Buyer struct {
	Country string      // ISO 3166-1 alpha-2, in capitals
	Source  BuyerSource // who says so
}

type BuyerSource string

const (
	ByShopper BuyerSource = "shopper"
	ByAgent   BuyerSource = "agent"
	ByRequest BuyerSource = "request" // a header of the request; it is not stored
)

// Or returns the buyer, or if that is not known, one in the country that the request comes from, "" for none.
func (b Buyer) Or(request string) Buyer {
	if b.Country == "" && request != "" {
		return Buyer{request, ByRequest}
	}
	return b
}

// SetBuyer is the rule that says in which country the buyer is; the zero value makes that unknown. An agent does not replace what
// the shopper has said, and makes no cart by it.
func SetBuyer(b Buyer) Rule {
	return func(cell *Cell, _ Limits, _ time.Time) Effect {
		c := cell.Cart
		if b.Source != ByAgent || c.Buyer.Source != ByShopper && len(c.Lines) > 0 {
			c.Buyer = b
		}
		return Effect{Cart: c, Altered: c.Buyer != cell.Buyer}
	}
}

// ParseCountry returns a country's code of ISO 3166-1 in capitals, from one in any case; "" for a code that is not assigned.
func ParseCountry(s string) string {
	if code := strings.ToUpper(s); len(s) == 2 && strings.Contains(countries, " "+code+" ") {
		return code
	}
	return ""
}

// countries are the codes that ISO 3166-1 has assigned.
const countries = " AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ" +
	" CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR" +
	" GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP" +
	" KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ" +
	" NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW" +
	" SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ" +
	" UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW "
