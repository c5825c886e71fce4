package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value parses the text of a setting, checks it and stores it.
type Value struct {
	kind string // shown by help
	set  func(text string) error
}

const (
	listKind   = "LIST"
	switchKind = "bool" // the name by which pflag knows a flag that needs no value
)

// Parsed is what parse returns.
func Parsed[T any](to *T, parse func(string) (T, error)) Value { return value("TEXT", to, parse) }

func value[T any](kind string, to *T, parse func(string) (T, error)) Value {
	return Value{kind, func(text string) (err error) {
		*to, err = parse(text)
		return err
	}}
}

// Text is a text that is empty or passes a check. nil: any text.
func Text(to *string, check func(string) error) Value {
	return Parsed(to, func(text string) (string, error) {
		if check == nil || text == "" {
			return text, nil
		}
		return text, check(text)
	})
}

// Word is one of a few words. The empty word stands for an optional setting.
func Word(to *string, words ...string) Value {
	named := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "" })
	return value(strings.Join(named, "|"), to, func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("%q is not one of %s", text, strings.Join(named, ", "))
		}
		return text, nil
	})
}

// OnOff is true for "on" and false for "off".
func OnOff(to *bool) Value { return Either(to, "on", "on", "off") }

// Either is true for one of some words, and false for the others.
func Either(to *bool, yes string, words ...string) Value {
	word := Word(new(string), words...)
	return Value{word.kind, func(text string) error {
		*to = text == yes
		return word.set(text)
	}}
}

// Number is a whole number between two bounds, which are allowed. A maximum of 0 means none.
func Number[T int | int64](to *T, minimum, maximum T) Value {
	return value("N", to, func(text string) (T, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", text)
		}
		return T(n), within(T(n), minimum, maximum)
	})
}

// Duration is a duration between two bounds, which are allowed. A maximum of 0 means none.
func Duration(to *time.Duration, minimum, maximum time.Duration) Value {
	return value("DURATION", to, func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if days, found := strings.CutSuffix(text, "d"); found {
			var n int64
			n, err = strconv.ParseInt(days, 10, 17) // what a duration can hold
			d = time.Duration(n) * 24 * time.Hour
		}
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration such as 30s, 720h or 7d", text)
		}
		return d, within(d, minimum, maximum)
	})
}

func within[T int | int64 | time.Duration](value, minimum, maximum T) error {
	switch {
	case maximum == 0 && value < minimum:
		return fmt.Errorf("must be at least %v", minimum)
	case maximum != 0 && (value < minimum || value > maximum):
		return fmt.Errorf("must be from %v to %v", minimum, maximum)
	}
	return nil
}

// List is a list, separated by commas, whose elements pass a check. It is nil if the text is empty.
func List(to *[]string, check func(string) error) Value {
	return value(listKind, to, func(text string) ([]string, error) {
		if text == "" {
			return nil, nil
		}
		all := strings.Split(text, ",")
		for _, element := range all {
			if err := check(element); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
}

// Switch is a flag that turns something on.
func Switch(to *bool) Value {
	return value(switchKind, to, func(text string) (bool, error) {
		on, err := strconv.ParseBool(cmp.Or(text, "false"))
		if err != nil {
			err = fmt.Errorf("%q is not true or false", text)
		}
		return on, err
	})
}

// flagText is the text of a flag. It implements pflag.Value.
type flagText struct {
	setting Setting
	text    string
}

// Set takes a list in several flags, of which an empty one drops those before it.
func (f *flagText) Set(text string) error {
	if f.setting.Value.kind == listKind && f.text != "" && text != "" {
		text = f.text + "," + text
	}
	f.text = text
	return nil
}

func (f *flagText) String() string { return f.text }

func (f *flagText) Type() string { return f.setting.hint() }
