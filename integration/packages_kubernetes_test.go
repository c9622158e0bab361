//go:build integration

package integration

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rpc/auth/authtest"
)

// manifest is what the tests look at of a Kubernetes object.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string // of a ConfigMap
	Spec     struct {
		Selector json.RawMessage // of a Service, a map; else with matchLabels
		Ports    []struct{ TargetPort string }
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
	}
}

type podSpec struct {
	AutomountServiceAccountToken  *bool
	TerminationGracePeriodSeconds int
	SecurityContext               struct {
		RunAsNonRoot       bool
		RunAsUser, FSGroup int
		SeccompProfile     struct{ Type string }
	}
	Containers []container
	Volumes    []struct {
		Name   string
		Secret struct{ SecretName string }
	}
}

type container struct {
	Name, Image string
	EnvFrom     []struct{ ConfigMapRef struct{ Name string } }
	Env         []struct{ Name, Value string }
	Ports       []struct {
		Name          string
		ContainerPort int
	}
	StartupProbe, ReadinessProbe, LivenessProbe probe
	Lifecycle                                   struct {
		PreStop struct{ Sleep struct{ Seconds int } }
	}
	Resources       struct{ Limits struct{ Memory string } }
	SecurityContext struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
	VolumeMounts []struct{ Name, MountPath string }
}

type probe struct {
	HTTPGet struct{ Path, Port, Scheme string }
}

// cluster holds the manifests by "Kind NAME".
type cluster map[string]manifest

// manifests reads our manifests, which must be right for these versions of Kubernetes.
func manifests(ctx context.Context, t *testing.T, versions string) cluster {
	t.Helper()
	if err := e2e.SetUp(ctx, "python_checks"); err != nil {
		t.Fatal(err)
	}
	root := must[string](t)(e2e.Root())
	out := must[[]byte](t)(e2e.PythonIn(ctx, "python-checks", nil,
		filepath.Join(root, "integration/readers/manifests.py"), versions,
		filepath.Join(root, "gateway/packaging/kubernetes.yaml"),
		filepath.Join(root, "pushdown/packaging/kubernetes.yaml")))
	var read struct {
		Documents []manifest
		Faults    []string
	}
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatal(err)
	}
	for _, fault := range read.Faults {
		t.Error(fault)
	}
	all := make(cluster)
	for _, m := range read.Documents {
		all[m.Kind+" "+m.Metadata.Name] = m
	}
	return all
}

// environment is what a container is started with, its variables in the order of their names.
func (c cluster) environment(t *testing.T, of container) map[string]string {
	t.Helper()
	env := map[string]string{"NODE_NAME": "node-1"}
	for _, from := range of.EnvFrom {
		named, ok := c["ConfigMap "+from.ConfigMapRef.Name]
		if !ok {
			t.Errorf("%s: ConfigMap %q is not there", of.Name, from.ConfigMapRef.Name)
		}
		maps.Copy(env, named.Data)
	}
	for _, e := range of.Env {
		if e.Value != "" {
			env[e.Name] = strings.ReplaceAll(e.Value, "$(NODE_NAME)", env["NODE_NAME"])
		}
	}
	return env
}

// pods are the workloads, and the most that each program may take to end.
var pods = map[string]struct {
	workload string
	ends     int // seconds
}{
	"gateway":  {"Deployment downpour-gateway", 75}, // endWithin of gateway/cmd/gateway
	"pushdown": {"DaemonSet downpour-pushdown", 15}, // 10 s for its parts, see pushdown/rpc/server
}

// The manifests are right for Kubernetes from 1.30 on, name only settings that there are, and give
// the pods no right that they do not need.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	all := manifests(within(t, 10*time.Minute), t, "1.30,1.31,1.32,1.33,1.34,1.35,1.36,1.37")
	for program, of := range pods {
		m, ok := all[of.workload]
		if !ok || len(m.Spec.Template.Spec.Containers) != 1 {
			t.Fatalf("no %s with one container", of.workload)
		}
		pod := m.Spec.Template.Spec
		c := pod.Containers[0]
		env := all.environment(t, c)
		for name := range env {
			if !slices.Contains(settings.Known(), name) && name != "NODE_NAME" {
				t.Errorf("%s: no program knows the variable %s", program, name)
			}
		}

		s := c.SecurityContext
		if p := pod.SecurityContext; !p.RunAsNonRoot || p.RunAsUser != 10001 ||
			p.SeccompProfile.Type != "RuntimeDefault" || !s.ReadOnlyRootFilesystem ||
			s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || pod.AutomountServiceAccountToken == nil ||
			*pod.AutomountServiceAccountToken {
			t.Errorf("%s: the pod may more than it needs: %+v %+v", program, p, s)
		}
		if before := c.Lifecycle.PreStop.Sleep.Seconds; pod.TerminationGracePeriodSeconds < before+of.ends {
			t.Errorf("%s: has %d s to end, of which %d before SIGTERM, but may need %d after it",
				program, pod.TerminationGracePeriodSeconds, before, of.ends)
		}
		limit, err := settings.ParseNumber(c.Resources.Limits.Memory + "B")
		budget, err2 := settings.ParseNumber(env["DOWNPOUR_MEMORY"])
		if err != nil || err2 != nil || budget*5/4 > limit {
			t.Errorf("%s: resident memory may be 1.25 of DOWNPOUR_MEMORY=%s, the limit is %s (%v, %v)",
				program, env["DOWNPOUR_MEMORY"], c.Resources.Limits.Memory, err, err2)
		}

		listen := map[string]string{"gateway": "DOWNPOUR_LISTEN", "pushdown": "DOWNPOUR_PUSHDOWN_LISTEN"}[program]
		_, port, _ := strings.Cut(env[listen], ":")
		if len(c.Ports) != 1 || fmt.Sprint(c.Ports[0].ContainerPort) != port {
			t.Errorf("%s: ports %+v, but it listens on %s", program, c.Ports, port)
		}
		for _, asked := range []probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			if asked.HTTPGet.Port != c.Ports[0].Name || asked.HTTPGet.Scheme != "HTTPS" {
				t.Errorf("%s: the probe %+v does not ask the port over TLS", program, asked)
			}
		}
		for _, mount := range c.VolumeMounts {
			if !slices.ContainsFunc(slices.Collect(maps.Values(env)), func(v string) bool {
				return strings.HasPrefix(v, mount.MountPath+"/")
			}) {
				t.Errorf("%s: no setting names a file in %s", program, mount.MountPath)
			}
		}
	}

	server := all.environment(t, all["DaemonSet downpour-pushdown"].Spec.Template.Spec.Containers[0])
	gateway := all.environment(t, all["Deployment downpour-gateway"].Spec.Template.Spec.Containers[0])
	listens, announced := server["DOWNPOUR_PUSHDOWN_LISTEN"], server["DOWNPOUR_ANNOUNCE"]
	if how := gateway["DOWNPOUR_PUSHDOWN"]; how != "auto" || announced != "node-1"+listens {
		t.Errorf("gateways have DOWNPOUR_PUSHDOWN=%s, a server listens at %s and announces %s", how, listens, announced)
	}

	for _, name := range []string{
		"Service downpour", "PodDisruptionBudget downpour-gateway", "Deployment downpour-gateway",
	} {
		text := string(all[name].Spec.Selector)
		for key, value := range all["Deployment downpour-gateway"].Spec.Template.Metadata.Labels {
			if !strings.Contains(text, fmt.Sprintf("%q: %q", key, value)) {
				t.Errorf("%s selects %s, want the gateways' %s=%s", name, text, key, value)
			}
		}
	}
	if ports := all["Service downpour"].Spec.Ports; len(ports) != 1 ||
		ports[0].TargetPort != all["Deployment downpour-gateway"].Spec.Template.Spec.Containers[0].Ports[0].Name {
		t.Errorf("the service has the ports %+v, want the gateways'", ports)
	}
}

// With the environment and the secrets of its pod, except for the store and the port, each image
// starts and answers the probes as the manifest wants them.
func TestKubernetes_probes(t *testing.T) {
	t.Parallel()
	ctx := within(t, 15*time.Minute)
	all := manifests(ctx, t, "1.30")
	kubelet := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	asks := func(ctx context.Context, address string, p probe) (int, string, error) {
		request := must[*http.Request](t)(http.NewRequestWithContext(ctx, http.MethodGet,
			strings.ToLower(p.HTTPGet.Scheme)+"://"+address+p.HTTPGet.Path, nil))
		answer, err := kubelet.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body), err
	}

	for program, of := range pods {
		pod := all[of.workload].Spec.Template.Spec
		c := pod.Containers[0]
		env := all.environment(t, c)
		address := fmt.Sprintf("127.0.0.1:%d", must[int](t)(e2e.FreePort()))
		env["DOWNPOUR_STORE"] = "hbase:127.0.0.1:1"
		env["DOWNPOUR_LISTEN"] = address
		env["DOWNPOUR_PUSHDOWN_LISTEN"] = address
		if program == "gateway" {
			env["DOWNPOUR_STORE"] = "pebble:/var/lib/downpour/data"
		}
		o := e2e.ImageRun{Mount: secrets(t, c, pod.SecurityContext.FSGroup)}
		for name, value := range env {
			o.Env = append(o.Env, name+"="+value)
		}

		i := image(ctx, t, program)
		p := must[*e2e.Process](t)(i.Start(ctx, o, t.TempDir()))
		t.Cleanup(p.Kill)
		for _, asked := range []probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			want := 200
			if program == "pushdown" && asked == c.ReadinessProbe {
				want = 503 // there is no HBase
			}
			err := e2e.UntilProcess(ctx, p, 50*time.Millisecond, func(ctx context.Context) error {
				status, body, err := asks(ctx, address, asked)
				if err == nil && status != want {
					err = fmt.Errorf("status %d, want %d: %s", status, want, body)
				}
				return err
			})
			if err != nil {
				t.Fatalf("%s: %+v: %v\n%s", program, asked, err, p.LogTail(20))
			}
		}
		if status, out, err := i.Healthy(ctx, o); err != nil || status != 0 {
			t.Errorf("%s: the image's own check, over TLS: status %d, error %v, %s", program, status, err, out)
		}
	}
}

// secrets makes the directories that a container mounts, as the kubelet does: the files belong to
// root, and the pod's group may read them.
func secrets(t *testing.T, c container, group int) map[string]string {
	t.Helper()
	made := authtest.NewCertificate(t)
	files := map[string]map[string]string{
		"tokens": {"tokens": "read a-token-for-reading\nwrite a-token-for-writing\nadmin a-token-for-admins\n"},
		"tls": {
			"tls.crt": string(must[[]byte](t)(os.ReadFile(made.CertFile))),
			"tls.key": string(must[[]byte](t)(os.ReadFile(made.KeyFile))),
		},
	}
	mounts := make(map[string]string)
	for _, m := range c.VolumeMounts {
		dir := t.TempDir()
		for name, text := range files[m.Name] {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o440); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(path, 0, group); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		mounts[m.MountPath] = dir
	}
	return mounts
}
