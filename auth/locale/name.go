package locale

// Name is a merchant's name for something: in the store's language, and optionally in others.
type Name struct {
	Own    string            // in the store's language
	Others map[Locale]string // nil for none
}

// Named returns a name that is the same in every language.
func Named(own string) Name { return Name{Own: own} }

// In returns the name in l, or in the store's language if there is none in l.
func (n Name) In(l Locale) string {
	if s := n.Others[l]; s != "" {
		return s
	}
	return n.Own
}

// String returns the name in the store's language.
func (n Name) String() string { return n.Own }
