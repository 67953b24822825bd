//! Control groups: finds the folders of the groups that contain this process.

use std::path::Path;

/// The mount point of control groups.
pub const ROOT: &str = "/sys/fs/cgroup";

/// The file that names this process's groups.
pub const OWN: &str = "/proc/self/cgroup";

/// Visits the folders of the groups in which a controller may be limited, each group before its parents. `groups` is the text of
/// /proc/self/cgroup. `visit` also receives whether the group is of version 1. In a container the group's own path is often not
/// mounted; the mounted root is the group then.
pub fn visit(groups: &str, root: &Path, controller: &str, visit: &mut dyn FnMut(&Path, bool)) {
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        // Version 2 has one hierarchy without a name. Version 1 has one for each controller.
        let first = !controllers.is_empty();
        if first && !controllers.split(',').any(|name| name == controller) {
            continue;
        }
        let root = if first { root.join(controller) } else { root.to_path_buf() };
        let mut folder = root.join(path.trim_start_matches('/'));
        while folder.starts_with(&root) {
            visit(&folder, first);
            if !folder.pop() {
                break;
            }
        }
    }
}
