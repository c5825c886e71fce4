package plots

import "image/color"

// theme is a set of colors.
type theme struct {
	name                         string
	background, text, weak, grid color.Color
	series                       [roles]pair
}

// pair is a color and a lighter one for the second part of the same bar.
type pair struct{ strong, weak color.Color }

// role is what a line or bar stands for. It has the same color in all plots.
type role int

const (
	floor   role = iota // a floor
	service             // the service
	variant             // the service used in another way
	roles
)

func light() theme {
	return theme{
		name: "light", background: rgb(0xffffff), text: rgb(0x1f2328), weak: rgb(0x59636e), grid: rgb(0xe4e8ec),
		series: [roles]pair{
			floor:   {rgb(0x6e7781), rgb(0xc4cad1)},
			service: {rgb(0x0969da), rgb(0x9cc9f7)},
			variant: {rgb(0xbc4c00), rgb(0xf3c19f)},
		},
	}
}

func dark() theme {
	return theme{
		name: "dark", background: rgb(0x0d1117), text: rgb(0xe6edf3), weak: rgb(0x9198a1), grid: rgb(0x262c34),
		series: [roles]pair{
			floor:   {rgb(0x9198a1), rgb(0x4b535d)},
			service: {rgb(0x4493f8), rgb(0x234b80)},
			variant: {rgb(0xf0883e), rgb(0x7a421a)},
		},
	}
}

func rgb(hex uint32) color.Color {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

// faint is a color through which a grid is visible.
func faint(c color.Color) color.Color {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	n.A = 0x30
	return n
}
