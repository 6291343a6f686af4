// The Kubernetes provider of Pulumi, from its Go module. The module's own main embeds two files that only its
// Makefile generates; this one embeds the two that the module holds, which the build puts beside it.
package main

import (
	_ "embed"
	"fmt"
	"os"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var terraformMapping []byte

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println(version.Version)
		return
	}
	provider.Serve("kubernetes", version.Version, schema, terraformMapping)
}
