package wire

import "encoding/binary"

// Part is JSON that is written once and then copied into many responses: members of an object.
type Part struct {
	json []byte
	sum  uint64 // digest of what the ETag covers of it
}

// NewPart returns the part that write writes, in the language of w.
func (w *Writer) NewPart(write func(*Writer)) Part {
	own := NewWriter(nil, w.Language, w.prices)
	write(own)
	return Part{own.json, own.sum()}
}

func (p *Part) Size() int { return len(p.json) }

// Part writes a part. The ETag covers its digest instead of its bytes.
func (w *Writer) Part(p *Part) {
	w.separate()
	w.cover(len(w.json))
	w.json = append(w.json, p.json...)
	w.digested = len(w.json)
	var sum [8]byte
	binary.LittleEndian.PutUint64(sum[:], p.sum)
	_, _ = w.digest.Write(sum[:])
}
