package locale

import "strings"

// parseMember splits one member of an Accept-Language header, such as
// "en-US;q=0.8", into its tag and its weight in thousandths. The tag is not
// checked; ok is false where it is empty or the weight is not one.
func parseMember(s string) (tag string, weight int, ok bool) {
	tag, parameter, weighted := strings.Cut(s, ";")
	tag = trim(tag)
	if !weighted {
		return tag, 1000, tag != ""
	}
	parameter = trim(parameter)
	if len(parameter) < 3 || parameter[0]|0x20 != 'q' || parameter[1] != '=' {
		return "", 0, false
	}
	weight, ok = parseWeight(parameter[2:])
	return tag, weight, ok && tag != ""
}

// parseWeight reads a qvalue (RFC 9110, section 12.4.2), 0 to 1 with at most
// three decimals, in thousandths.
func parseWeight(s string) (weight int, ok bool) {
	whole, decimals, dotted := strings.Cut(s, ".")
	if whole != "0" && whole != "1" || len(decimals) > 3 {
		return 0, false
	}
	weight = int(whole[0]-'0') * 1000
	if !dotted {
		return weight, true
	}
	for i, unit := 0, 100; i < len(decimals); i, unit = i+1, unit/10 {
		if decimals[i] < '0' || decimals[i] > '9' {
			return 0, false
		}
		weight += int(decimals[i]-'0') * unit
	}
	return weight, weight <= 1000
}

// trim drops the optional white space HTTP allows around a member's parts.
func trim(s string) string { return strings.Trim(s, " \t") }
