package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// modulesIn returns the modules whose code is in a program, and Go's standard library as the
// module "std".
func modulesIn(program []byte) ([]*debug.Module, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("read modules of the program: %w", err)
	}
	modules := []*debug.Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// writeSBOM writes the modules of a program as a CycloneDX document in JSON.
func writeSBOM(path string, program []byte, version string, tree source, modules []*debug.Module, l licenses) error {
	digest := sha256.Sum256(program)
	self := component("commerce", version, "")
	self.Type = cyclonedx.ComponentTypeApplication
	self.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}}

	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serialNumber(digest)
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp:  tree.committed.Format(time.RFC3339),
		Component:  &self,
		Properties: &[]cyclonedx.Property{{Name: "commerce:commit", Value: tree.commit}},
	}
	components, uses := []cyclonedx.Component{}, []string{}
	for _, m := range modules {
		c := component(m.Path, m.Version, l.names[m.Path])
		components = append(components, c)
		uses = append(uses, c.BOMRef)
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: self.BOMRef, Dependencies: &uses}}

	var text bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return fmt.Errorf("encode SBOM: %w", err)
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// component describes a Go module. names are its SPDX identifiers; "" adds none.
func component(path, version, names string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	c := cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
	if names != "" {
		c.Licenses = &cyclonedx.Licenses{}
		for name := range strings.SplitSeq(names, ", ") {
			*c.Licenses = append(*c.Licenses, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: name}})
		}
	}
	return c
}

// serialNumber makes a UUID of a digest, so that the same program has the same one.
func serialNumber(digest [sha256.Size]byte) string {
	id := digest[:16]
	id[6] = id[6]&0x0f | 0x80 // version 8, custom
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
